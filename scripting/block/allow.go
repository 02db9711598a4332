package block

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/grant"
)

// Allow grants access to external resources. A script can access only resources
// that it also declares in its needs.
type Allow struct {
	// HTTP are patterns of URLs for requests of ctx.http.
	HTTP []string `alloy:"http,attr,optional"`
	// Env are the environment variables in ctx.env.
	Env []string `alloy:"env,attr,optional"`
	// Read are patterns of files that ctx.read may read.
	Read []string `alloy:"read,attr,optional"`
	// Exec are the programs that ctx.exec may run.
	Exec []string `alloy:"exec,attr,optional"`
	// Listen is refused, because a transform has no routes.
	Listen []string `alloy:"listen,attr,optional"`
}

// Validate returns all errors in the patterns, joined.
func (a *Allow) Validate() error {
	_, err := a.Grants()
	if len(a.Listen) > 0 {
		err = errors.Join(err, errors.New("cannot use listen in script.allow: nothing calls a transform from outside, it gets its data from other blocks"))
	}
	return err
}

// Grants returns the grants of the block. The error joins all errors in the
// patterns.
func (a *Allow) Grants() (g grant.Set, err error) {
	var errs [4]error
	g.URLs, errs[0] = parseAll("http", a.HTTP, grant.ParseURL)
	g.Env, errs[1] = parseAll("env", a.Env, grant.ParseEnv)
	g.Files, errs[2] = parseAll("read", a.Read, grant.ParseFile)
	g.Commands, errs[3] = parseAll("exec", a.Exec, grant.ParseCommand)
	return g, errors.Join(errs[:]...)
}

func parseAll[P any](name string, list []string, parse func(string) (P, error)) (ps []P, err error) {
	var errs []error
	for _, s := range list {
		p, err := parse(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		ps = append(ps, p)
	}
	return ps, errors.Join(errs...)
}

// extendedBlock is the block script of a script that needs more settings.
type extendedBlock[M any] struct {
	ScriptBlock Script `alloy:",squash"`
	More        M      `alloy:",squash"`
}

// SetToDefault sets the defaults.
func (b *extendedBlock[M]) SetToDefault() {
	*b = extendedBlock[M]{}
	b.ScriptBlock.SetToDefault()
	switch m := any(&b.More).(type) {
	case *serving:
		m.Requests.SetToDefault()
	case *both:
		m.Serving.Requests.SetToDefault()
	}
}

// Validate calls Validate of the embedded structs, because the decoder does
// not.
func (b *extendedBlock[M]) Validate() error {
	if v, ok := any(&b.ScriptBlock).(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// scriptType returns the type of the block script.
func scriptType(def *scripting.Definition) reflect.Type {
	switch serves := len(def.HTTP) > 0; {
	case def.Needs.HTTP && serves:
		return reflect.TypeFor[extendedBlock[both]]()
	case def.Needs.HTTP:
		return reflect.TypeFor[extendedBlock[asking]]()
	case serves:
		return reflect.TypeFor[extendedBlock[serving]]()
	}
	return reflect.TypeFor[Script]()
}

// scriptBlock returns the block script of any script's arguments.
func scriptBlock(v any) Script {
	switch b := v.(type) {
	case extendedBlock[both]:
		b.ScriptBlock.http, b.ScriptBlock.requests = b.More.Asking.HTTP, b.More.Serving.Requests
		return b.ScriptBlock
	case extendedBlock[asking]:
		b.ScriptBlock.http = b.More.HTTP
		return b.ScriptBlock
	case extendedBlock[serving]:
		b.ScriptBlock.requests = b.More.Requests
		return b.ScriptBlock
	}
	return v.(Script)
}

// Missing is a grant that a script needs and that its block does not contain.
type Missing struct {
	kind string // as in allow
	What string // the resource, as text
	add  string // the pattern to write
}

// MissingGrants returns the needs of a script that g does not grant.
func MissingGrants(n scripting.Needs, g grant.Set) (ls []Missing) {
	if n.HTTP && len(n.URLs) == 0 && len(g.URLs) == 0 {
		ls = append(ls, Missing{"http", "http", "https://HOST/*"})
	}
	for _, u := range n.URLs {
		if !slices.ContainsFunc(g.URLs, func(p grant.URL) bool { return p.Covers(u) }) {
			ls = append(ls, Missing{"http", "http " + u.String(), u.String()})
		}
	}
	for _, name := range n.Env {
		if !slices.ContainsFunc(g.Env, func(p grant.Env) bool { return p.Match(name) }) {
			ls = append(ls, Missing{"env", "env " + name, name})
		}
	}
	if n.Read && len(n.Files) == 0 && len(g.Files) == 0 && !g.AnyFile {
		ls = append(ls, Missing{"read", "read", "/FOLDER/*"})
	}
	for _, f := range n.Files {
		if !slices.ContainsFunc(g.Files, func(p grant.File) bool { return p.Covers(f) }) {
			ls = append(ls, Missing{"read", "read " + f.String(), f.String()})
		}
	}
	if n.Exec && len(n.Programs) == 0 && len(g.Commands) == 0 && !g.AnyCommand {
		ls = append(ls, Missing{"exec", "exec", "/usr/bin/NAME"})
	}
	for _, name := range n.Programs {
		if !slices.ContainsFunc(g.Commands, func(p grant.Command) bool { return p.Is(name) }) {
			add := name
			if !strings.ContainsAny(name, `/\`) {
				add = "/usr/bin/" + name
			}
			ls = append(ls, Missing{"exec", "exec " + name, add})
		}
	}
	return ls
}

// UnneededGrants returns the patterns of a that a script with the needs n
// cannot use, by attribute.
func UnneededGrants(n scripting.Needs, a *Allow) map[string][]string {
	g, err := a.Grants()
	if err != nil {
		return nil
	}
	out := map[string][]string{}
	for _, p := range g.URLs {
		if !n.HTTP || len(n.URLs) > 0 && !slices.ContainsFunc(n.URLs, func(q grant.URL) bool { return p.Covers(q) || q.Covers(p) }) {
			out["http"] = append(out["http"], p.String())
		}
	}
	for _, p := range g.Env {
		if !slices.ContainsFunc(n.Env, p.Match) {
			out["env"] = append(out["env"], p.String())
		}
	}
	for _, p := range g.Files {
		if !n.Read || len(n.Files) > 0 && !slices.ContainsFunc(n.Files, func(q grant.File) bool { return p.Covers(q) || q.Covers(p) }) {
			out["read"] = append(out["read"], p.String())
		}
	}
	for _, p := range g.Commands {
		if !n.Exec || len(n.Programs) > 0 && !slices.ContainsFunc(n.Programs, p.Is) {
			out["exec"] = append(out["exec"], p.String())
		}
	}
	return out
}

// MissingError returns an error that shows what to add to a block, or nil if
// nothing is missing.
func MissingError(name string, a *Allow, ls []Missing) *component.ArgumentError {
	if len(ls) == 0 {
		return nil
	}
	what := make([]string, len(ls))
	for i, l := range ls {
		what[i] = l.What
	}
	return &component.ArgumentError{
		Path: "script.allow",
		//lint:ignore ST1005 what to add is the hint, below it
		Err:    fmt.Errorf("%s needs what its block does not grant: %s; add to the block:", name, strings.Join(what, ", ")),
		Detail: allowText(a, ls),
	}
}

// allowText returns the allow block with the missing grants in config syntax:
// the attributes that change.
func allowText(a *Allow, ls []Missing) string {
	var b strings.Builder
	b.WriteString("script {\n  allow {\n")
	for _, kind := range scripting.NeedKinds {
		var list []string
		for _, l := range ls {
			if l.kind == kind {
				list = append(list, l.add)
			}
		}
		if len(list) == 0 {
			continue
		}
		list = append(slices.Clone(a.Patterns(kind)), list...)
		for i, s := range list {
			list[i] = fmt.Sprintf("%q", s)
		}
		fmt.Fprintf(&b, "    %s = [%s]\n", kind, strings.Join(list, ", "))
	}
	b.WriteString("  }\n}")
	return b.String()
}

// Patterns returns the patterns of one of scripting.NeedKinds.
func (a *Allow) Patterns(kind string) []string {
	return map[string][]string{"http": a.HTTP, "env": a.Env, "read": a.Read, "exec": a.Exec}[kind]
}
