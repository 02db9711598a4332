package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/ast"
)

// Reference is a dotted name in an expression, such as
// prometheus.remote_write.default.receiver.
type Reference struct {
	// Path is the name up to the first index or call.
	Path []string
	Span
	name string // dotted name
	ends []Span // of each part of Path
	call bool   // it is a function call
}

// String returns the dotted name.
func (r Reference) String() string { return r.name }

// References returns the dotted names in the block's expressions, in order,
// including nested blocks and names of the standard library.
func (b *Block) References() []Reference { return slices.Clone(b.refs) }

// RefersTo reports whether f returns true for one of the dotted names of References.
func (b *Block) RefersTo(f func(name string) bool) bool {
	return slices.ContainsFunc(b.refs, func(r Reference) bool { return f(r.name) })
}

// Resolve returns the nodes that the block refers to, in order and without
// duplicates. It returns a diagnostic for each reference that is neither in
// scope nor in the standard library, or that its node does not export.
func (b *Block) Resolve(s *Scope) (nodes []string, ds Diagnostics) { return s.resolveAll(b.refs) }

func (s *Scope) resolveAll(refs []Reference) (nodes []string, ds Diagnostics) {
	for _, r := range refs {
		to, d := s.resolve(r)
		if d != nil {
			ds = append(ds, *d)
			continue
		}
		for _, n := range to {
			if !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes, ds
}

// appendReferences appends the dotted names in an expression or statement to
// refs.
func appendReferences(refs []Reference, n ast.Node) []Reference {
	ast.Walk((*collector)(&refs), n)
	return refs
}

type collector []Reference

// Visit appends the reference if n is one, and descends into everything else.
func (c *collector) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AccessExpr, *ast.IdentifierExpr:
	case *ast.CallExpr:
		ast.Walk(c, n.Value)
		if k := len(*c) - 1; k >= 0 && (*c)[k].Span == spanOf(n.Value) {
			(*c)[k].call = true
		}
		for _, arg := range n.Args {
			ast.Walk(c, arg)
		}
		return nil
	default:
		return c
	}
	var names []*ast.Ident
	for cur := n.(ast.Expr); ; {
		switch e := cur.(type) {
		case *ast.AccessExpr:
			names = append(names, e.Name)
			cur = e.Value
			continue
		case *ast.IdentifierExpr:
			names = append(names, e.Ident)
			slices.Reverse(names)
			r := Reference{Span: spanOf(n.(ast.Expr))}
			for _, id := range names {
				r.Path = append(r.Path, id.Name)
				r.ends = append(r.ends, spanOf(id))
			}
			r.name = strings.Join(r.Path, ".")
			*c = append(*c, r)
			return nil
		}
		// The accessed value is not a name, as in f(x).y: look inside it.
		ast.Walk(c, cur)
		return nil
	}
}

// unknown returns the diagnostic for a reference to an unknown node.
func (s *Scope) unknown(r Reference) *Diagnostic {
	ids := s.ids()
	d := &Diagnostic{Span: r.Span}
	if r.Path[0] == "argument" {
		return s.unknownArgument(r, ids)
	}
	if r.call {
		return unknownFunction(r)
	}
	// The ID is probably the path without its last part, the export. With fewer
	// than three parts, it is the whole path.
	name := r.String()
	if len(r.Path) >= 3 {
		name = strings.Join(r.Path[:len(r.Path)-1], ".")
	}
	if len(r.Path) == 1 {
		d.Msg = fmt.Sprintf("%s does not exist", name)
		d.Hint = DidYouMean(name, append(s.words(), stdlibNames...))
		if d.Hint == "" {
			d.Hint = fmt.Sprintf("a text is written in quotes: %q", name)
		}
		return d
	}
	d.Msg = fmt.Sprintf("component %s does not exist", name)
	where := "config"
	for out := s.outside(); out != nil; out = out.outside() {
		where = "declare"
		if _, _, n, _ := out.find(&r); n != nil {
			d.Msg += " in the declare"
			d.Hint = "a declare sees only what is in it: give it an argument for this, and hand it in where the declare is used"
			return d
		}
	}
	if instead, ok := s.lacks.Find(name[:strings.LastIndexByte(name, '.')]); ok {
		d.Hint = fmt.Sprintf("block %s is not supported: %s", name[:strings.LastIndexByte(name, '.')], instead)
		return d
	}
	d.Hint = DidYouMean(name, ids)
	if d.Hint == "" && len(r.Path) < 3 {
		d.Hint = DidYouMean(r.Path[0], s.words())
	}
	if d.Hint == "" {
		// The most common error is a correct name with a wrong label, however
		// different the labels are.
		var same []string
		for _, id := range ids {
			if i, j := strings.LastIndexByte(id, '.'), strings.LastIndexByte(name, '.'); i > 0 && id[:i] == name[:j] {
				same = append(same, id)
			}
		}
		if len(same) > 0 {
			d.Hint = "there is " + strings.Join(same[:min(len(same), 3)], ", ")
		} else {
			d.Hint = "add a block for it to the " + where
		}
	}
	return d
}

// unknownArgument returns the diagnostic for a reference to an unknown
// argument.
func (s *Scope) unknownArgument(r Reference, ids []string) *Diagnostic {
	name := strings.Join(r.Path[:min(2, len(r.Path))], ".")
	d := &Diagnostic{Span: r.Span, Msg: fmt.Sprintf("%s does not exist", name)}
	var have []string
	for _, id := range ids {
		if strings.HasPrefix(id, "argument.") {
			have = append(have, id)
		}
	}
	d.Hint = DidYouMean(name, have)
	switch {
	case d.Hint != "":
	case len(have) > 0:
		d.Hint = "there is " + strings.Join(have, ", ")
	default:
		d.Hint = "arguments are those of the blocks argument in the declare around it"
	}
	return d
}

// words returns the variables whose name has one part.
func (s *Scope) words() (names []string) {
	for _, id := range s.ids() {
		if !strings.Contains(id, ".") {
			names = append(names, id)
		}
	}
	return names
}
