package config

import (
	"fmt"
	"slices"

	"github.com/grafana/alloy/syntax/ast"
)

// Declare is a custom component that a declare block defines. Its label is the
// name of the blocks that are its instances.
type Declare struct {
	*Block
	// Arguments are in the order of the config.
	Arguments []*Argument
	// Exports are in the order of the config. An instance exports their values
	// under their names.
	Exports []*Expression
	// Blocks are all other blocks in it. IDs are unique.
	Blocks []*Block
}

// Argument is an argument block inside a declare.
type Argument struct {
	Name string // its label
	Span
	Optional bool
	Default  *Expression // nil if there is no default
	Comment  string
}

// Declare decodes a declare block and returns the errors in it.
func (b *Block) Declare() (*Declare, Diagnostics) {
	ds := b.CheckLabel(LabelRequired)
	d := &Declare{Block: b}
	blocks, more := b.inside(b.stmt.Body)
	ds = append(ds, more...)
	for _, in := range blocks {
		switch in.Name {
		case "argument":
			a, more := in.argument()
			ds = append(ds, more...)
			if a.Name != "" {
				d.Arguments = append(d.Arguments, a)
			}
		case "export":
			x, more := in.export()
			ds = append(ds, more...)
			if x != nil {
				d.Exports = append(d.Exports, x)
			}
		default:
			d.Blocks = append(d.Blocks, in)
		}
	}
	return d, ds
}

// Argument returns the argument called name, or nil.
func (d *Declare) Argument(name string) *Argument {
	for _, a := range d.Arguments {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// ArgumentNames returns the names of the arguments, in order.
func (d *Declare) ArgumentNames() (names []string) {
	for _, a := range d.Arguments {
		names = append(names, a.Name)
	}
	return names
}

// ExportNames returns the names of the exports, in order.
func (d *Declare) ExportNames() (names []string) {
	for _, x := range d.Exports {
		names = append(names, x.Name)
	}
	return names
}

// inside returns the blocks of a body as separate blocks.
func (b *Block) inside(body ast.Body) (blocks []*Block, ds Diagnostics) {
	seen := map[string]*Block{}
	for _, stmt := range body {
		switch stmt := stmt.(type) {
		case *ast.AttributeStmt:
			ds.add(spanOf(stmt.Name), fmt.Sprintf("unknown attribute %s", stmt.Name.Name), fmt.Sprintf("a block %s has only blocks", b.Name))
		case *ast.BlockStmt:
			in := newBlock(stmt)
			if first, ok := seen[in.ID]; ok {
				ds.add(in.Span, fmt.Sprintf("block %s is defined twice", in.ID), fmt.Sprintf("first defined at %s; give one of them another label", first.Span))
				in.setAside(len(blocks)) // its errors are reported too
			}
			seen[in.ID] = in
			blocks = append(blocks, in)
		}
	}
	return blocks, ds
}

func (b *Block) argument() (*Argument, Diagnostics) {
	ds := b.CheckLabel(LabelRequired)
	var fixed struct {
		Optional bool   `alloy:"optional,attr,optional"`
		Comment  string `alloy:"comment,attr,optional"`
	}
	xs, more := b.settings(&fixed, "default")
	a := &Argument{Name: b.Label, Span: b.Span, Optional: fixed.Optional, Comment: fixed.Comment, Default: xs["default"]}
	ds = append(ds, more...)
	if a.Default != nil && !a.Optional && !ds.HasErrors() {
		ds = append(ds, Diagnostic{Span: a.Default.NameSpan, Severity: Warning, Hint: "write: optional = true",
			Msg: fmt.Sprintf("default has no effect: argument %q may not be left out", a.Name)})
	}
	return a, ds
}

func (b *Block) export() (*Expression, Diagnostics) {
	ds := b.CheckLabel(LabelRequired)
	xs, more := b.settings(&struct {
		Comment string `alloy:"comment,attr,optional"`
	}{}, "value")
	ds = append(ds, more...)
	x := xs["value"]
	if x == nil {
		ds.add(b.Span, "missing required attribute value", "")
		return nil, ds
	}
	x.Name, x.NameSpan = b.Label, b.Span
	return x, ds
}

// settings decodes the attributes of b into a struct. It returns the attributes
// named in later, which are not known before the config runs, as expressions.
func (b *Block) settings(into any, later ...string) (xs map[string]*Expression, ds Diagnostics) {
	xs = map[string]*Expression{}
	rest := *b.stmt
	rest.Body = nil
	for _, stmt := range b.stmt.Body {
		st, ok := stmt.(*ast.AttributeStmt)
		if !ok || !slices.Contains(later, st.Name.Name) {
			rest.Body = append(rest.Body, stmt)
			continue
		}
		if first := xs[st.Name.Name]; first != nil {
			ds.add(spanOf(st.Name), fmt.Sprintf("attribute %s is set twice", st.Name.Name), "first set at "+first.NameSpan.String())
			continue
		}
		xs[st.Name.Name] = newExpression(st)
	}
	return xs, append(ds, b.decodeConstant(&rest, nil, into, later...)...)
}

// decodeConstant decodes a body that may refer only to the standard library and
// to the constants of a scope, which may be nil. others are the names of its
// attributes and blocks that are not decoded.
func (b *Block) decodeConstant(stmt *ast.BlockStmt, s *Scope, into any, others ...string) (ds Diagnostics) {
	constants := (&Config{}).NewScope("")
	if s != nil {
		constants = s.constants()
	}
	ds = constants.constant(b.Name, appendReferences(nil, stmt.Body))
	own := &Block{ID: b.ID, Name: b.Name, Span: b.Span, stmt: stmt}
	return append(ds, own.decode(constants, into, others)...)
}

// constant returns an error for each reference that is neither to the standard
// library nor to s, and sets the referenced name to unknown.
func (s *Scope) constant(block string, refs []Reference) (ds Diagnostics) {
	for _, r := range refs {
		if _, std := stdlib(r.Path[0]); std || s.Has(r.Path[0]) {
			continue
		}
		ds.add(r.Span, fmt.Sprintf("%s cannot refer to %s", block, r), "it must be known before anything runs: functions and module_path can be used")
		s.SetUnknown(r.Path[0])
	}
	return ds
}

// CheckDefaults returns the errors in the defaults of the arguments. The
// constants come from s.
func (d *Declare) CheckDefaults(s *Scope) (ds Diagnostics) {
	for _, a := range d.Arguments {
		if a.Default == nil {
			continue
		}
		constants := s.constants()
		if more := constants.constant("argument "+a.Name, a.Default.refs); len(more) > 0 {
			ds = append(ds, more...)
			continue
		}
		if err, ok := a.Default.Evaluate(constants).Err.(Diagnostics); ok {
			ds = append(ds, err...)
		}
	}
	return ds
}

// constants returns a scope with the variables of s that do not belong to
// nodes.
func (s *Scope) constants() *Scope {
	c := s.Apart("")
	for ; s != nil; s = s.parent {
		for name, n := range s.names {
			if n.variable && n.node == "" && c.names[name] == nil {
				c.names[name] = n
			}
		}
	}
	return c
}

// Foreach is a foreach block.
type Foreach struct {
	*Block
	Collection *Expression
	// Var is the name of the item inside the template.
	Var string `alloy:"var,attr"`
	// ID is the name of the field that identifies an item.
	ID string `alloy:"id,attr,optional"`
	// HashStringID makes the names of nodes contain hashes of strings.
	HashStringID bool `alloy:"hash_string_id,attr,optional"`
	// EnableMetrics enables the metrics of the nodes.
	EnableMetrics bool `alloy:"enable_metrics,attr,optional"`
	// Template contains the blocks of each item. It is nil if there is no
	// template.
	Template []*Block
}

// Foreach decodes a foreach block and returns the errors in it. The constants
// come from s.
func (b *Block) Foreach(s *Scope) (*Foreach, Diagnostics) {
	f := &Foreach{Block: b}
	ds := b.CheckLabel(LabelRequired)
	rest := *b.stmt
	rest.Body = nil
	var template *ast.BlockStmt
	for _, stmt := range b.stmt.Body {
		switch st := stmt.(type) {
		case *ast.AttributeStmt:
			if st.Name.Name != "collection" {
				break
			}
			if f.Collection != nil {
				ds.add(spanOf(st.Name), "attribute collection is set twice", "first set at "+f.Collection.NameSpan.String())
			} else {
				f.Collection = newExpression(st)
			}
			continue
		case *ast.BlockStmt:
			if st.GetBlockName() != "template" {
				break
			}
			switch {
			case template != nil:
				ds.add(headerSpan(st), "block template can be there only once", "first at "+headerSpan(template).String())
				continue
			case st.Label != "":
				ds.add(headerSpan(st), "block template takes no label", "")
			}
			template = st
			continue
		}
		rest.Body = append(rest.Body, stmt)
	}
	ds = append(ds, b.decodeConstant(&rest, s, f, "collection", "template")...)
	if f.Collection == nil {
		ds.add(b.Span, "missing required attribute collection", "")
	}
	if f.Var != "" && !identifiers.MatchString(f.Var) || identifiers.FindString(f.Var) != f.Var {
		ds.add(b.SpanOf("var"), fmt.Sprintf("var is %q, must be a name of letters, digits and _", f.Var), "")
		f.Var = ""
	}
	if template == nil {
		ds.add(b.Span, "missing required block template", "")
		return f, ds
	}
	var more Diagnostics
	f.Template, more = (&Block{Name: "template"}).inside(template.Body)
	if f.Template == nil {
		f.Template = []*Block{}
	}
	return f, append(ds, more...)
}
