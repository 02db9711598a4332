package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/pkg"
)

// PolicyArguments are those of the block policy.
type PolicyArguments struct {
	Sources          []string `alloy:"sources,attr,optional"`
	RequireSignature []string `alloy:"require_signature,attr,optional"`
	DenyGrants       []string `alloy:"deny_grants,attr,optional"`
}

// Policy decodes a block policy. It never returns nil: of a block with errors, it returns
// what could be read. grants are the kinds of grants that exist. The constants come from s.
func (b *Block) Policy(s *Scope, grants []string) (*pkg.Policy, Diagnostics) {
	var a PolicyArguments
	ds := append(b.CheckLabel(LabelForbidden), b.decodeConstant(b.stmt, s, &a)...)
	p := &pkg.Policy{Sources: a.Sources, DenyGrants: a.DenyGrants}
	if err := pkg.CheckSources(a.Sources); err != nil {
		ds.add(b.SpanOf("sources"), "sources: "+err.Error(), "")
	}
	for _, text := range a.RequireSignature {
		k, err := pkg.ParsePublicKey(text)
		if err != nil {
			ds.add(b.SpanOf("require_signature"), fmt.Sprintf("require_signature: %q is %v", text, err), "")
			continue
		}
		p.Keys = append(p.Keys, k)
	}
	for _, kind := range a.DenyGrants {
		if !slices.Contains(grants, kind) {
			ds.add(b.SpanOf("deny_grants"), fmt.Sprintf("deny_grants: there are no grants of the kind %q, only %s", kind, strings.Join(grants, ", ")), "")
		}
	}
	for _, empty := range []struct {
		name string
		list []string
	}{{"sources", a.Sources}, {"require_signature", a.RequireSignature}} {
		if empty.list != nil && len(empty.list) == 0 {
			ds.add(b.SpanOf(empty.name), empty.name+" is empty, which would restrict nothing: remove it, or add an element", "")
		}
	}
	return p, ds
}
