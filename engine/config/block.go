package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/ast"
)

// Block is one top-level block.
type Block struct {
	// ID is name.label, or name for a block without a label. It is the node's name
	// in the graph.
	ID string
	// Name is the block's name, such as prometheus.scrape.
	Name string
	// Label is an identifier, or empty.
	Label string
	// Span is the position of its name and label.
	Span

	stmt *ast.BlockStmt
	text string // of the whole block; "" if it is nested or in a file with errors
	at   int    // offset of text in its file
	refs []Reference
	// of contains the references in each decoded expression, because a block
	// inside a declare is decoded for each instance.
	of map[ast.Expr][]Reference
}

func newBlock(stmt *ast.BlockStmt) *Block {
	b := &Block{Name: stmt.GetBlockName(), Label: stmt.Label, Span: headerSpan(stmt), stmt: stmt}
	b.ID = b.Name
	if b.Label != "" {
		b.ID += "." + b.Label
	}
	for _, s := range stmt.Body {
		b.refs = appendReferences(b.refs, s)
	}
	return b
}

// SameText reports whether two top-level blocks were written in the same way, so that
// they have the same arguments if the values that they refer to are the same.
func (b *Block) SameText(other *Block) bool { return b.text != "" && b.text == other.text }

// Text returns the block as it is written, or in the standard layout if it is nested.
func (b *Block) Text() string {
	if b.text != "" {
		return b.text
	}
	text, err := layOut(&ast.File{Body: ast.Body{b.stmt}})
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(text, "\n")
}

// aside is part of the IDs of blocks that are defined twice.
const aside = " (block "

// setAside gives a duplicate block an ID that nothing can refer to.
func (b *Block) setAside(n int) {
	suffix := fmt.Sprintf("%s%d)", aside, n+1)
	b.ID += suffix
	if b.Name == "declare" || b.IsImport() {
		b.Label += suffix
	}
}

func headerSpan(stmt *ast.BlockStmt) Span {
	end := stmt.NamePos.Add(len(stmt.GetBlockName()) - 1)
	if stmt.LabelPos.Valid() {
		end = stmt.LabelPos.Add(len(stmt.Label) + 1)
	}
	return newSpan(stmt.NamePos, end)
}

// LabelRule specifies whether a block has a label.
type LabelRule uint8

// The label is required, forbidden or optional.
const (
	LabelRequired LabelRule = iota
	LabelForbidden
	LabelOptional
)

// CheckLabel returns the error in a block's label, if there is one. Load has
// already checked that labels are identifiers.
func (b *Block) CheckLabel(rule LabelRule) (ds Diagnostics) {
	switch {
	case rule == LabelRequired && b.Label == "":
		ds.add(b.Span, fmt.Sprintf("block %s needs a label", b.Name), fmt.Sprintf(`write: %s "default" {`, b.Name))
	case rule == LabelForbidden && b.Label != "":
		ds.add(b.Span, fmt.Sprintf("block %s takes no label", b.Name), fmt.Sprintf("there is only one: write: %s {", b.Name))
	}
	return ds
}

// inModules are blocks that are valid inside a declare only.
var inModules = map[string]bool{"argument": true, "export": true}

// withoutEffect are Alloy blocks that weir accepts and ignores.
var withoutEffect = map[string]bool{"livedebugging": true, "tracing": true}

// knownBlocks are predefined blocks. A declare cannot have one of these names.
var knownBlocks = map[string]bool{"declare": true, "foreach": true, "import": true, "policy": true, "template": true, "logging": true, "module_path": true, "remotecfg": true}

// IsBlock reports whether name is a predefined block, or the first part of its
// name.
func IsBlock(name string) bool {
	return knownBlocks[name] || inModules[name] || withoutEffect[name]
}

// ofLanguage are blocks that are part of the language, so no catalog knows
// them.
var ofLanguage = append([]string{"declare", "foreach", "policy"}, imports...)

// Unsupported lists blocks that weir recognises but does not support, each with
// a replacement. A name that ends in ".*" matches all names with the prefix
// before the star.
type Unsupported map[string]string

// Find returns the replacement of a block, and whether it is in the list.
func (u Unsupported) Find(name string) (instead string, ok bool) {
	if instead, ok = u[name]; ok {
		return instead, true
	}
	for i := strings.LastIndexByte(name, '.'); i > 0; i = strings.LastIndexByte(name[:i], '.') {
		if instead, ok = u[name[:i]+".*"]; ok {
			return instead, true
		}
	}
	return "", false
}

// Suggest returns a hint with names that are similar to a misspelt name, or ""
// if there are none. names are the valid names.
func (u Unsupported) Suggest(name string, names []string) string {
	near := nearest(name, slices.Concat(names, slices.Collect(maps.Keys(u))))
	if len(near) == 0 {
		return ""
	}
	if i := slices.IndexFunc(near, func(n string) bool { return u[n] == "" }); i > 0 { // weir supports it
		near = append([]string{near[i]}, slices.Delete(near, i, i+1)...)
	}
	near = slices.DeleteFunc(near, func(n string) bool { return n != near[0] && u[n] != "" })
	hint := didYouMean(near)
	if instead := u[near[0]]; instead != "" {
		hint += " It is not supported: " + instead
	}
	return hint
}

// Check reports whether a block's name is one of names, which are all valid
// names. If it is not, ds describe the error. They are warnings if weir ignores
// the block; the caller may then skip it. files are the paths of files that
// would define the name.
func (b *Block) Check(names []string, u Unsupported, files ...string) (known bool, ds Diagnostics) {
	if slices.Contains(names, b.Name) {
		return true, nil
	}
	instead, unsupported := u.Find(b.Name)
	suggestion := ""
	if _, exact := u[b.Name]; !exact {
		suggestion = u.Suggest(b.Name, slices.Concat(names, ofLanguage))
	}
	switch {
	case inModules[b.Name]:
		ds.add(b.Span, fmt.Sprintf("block %s belongs inside of a declare", b.Name), "")
	case withoutEffect[b.Name]:
		ds = append(ds, Diagnostic{Span: b.Span, Severity: Warning, Msg: fmt.Sprintf("block %s has no effect", b.Name), Hint: "remove the block"})
	case suggestion != "":
		ds.add(b.Span, fmt.Sprintf("component %s does not exist", b.Name), suggestion)
	case unsupported:
		ds.add(b.Span, fmt.Sprintf("block %s is not supported", b.Name), instead)
	default:
		hint := "`weir components` lists all there are"
		if len(files) > 0 {
			hint += "; a script of this name would be " + files[0]
		}
		ds.add(b.Span, fmt.Sprintf("component %s does not exist", b.Name), hint)
	}
	return false, ds
}

// Settled reports whether everything that an attribute or block of b refers to
// is known. It is true if the attribute or block does not exist.
func (b *Block) Settled(s *Scope, name string) bool {
	return !slices.ContainsFunc(b.stmt.Body, func(st ast.Stmt) bool {
		switch st := st.(type) {
		case *ast.AttributeStmt:
			if st.Name.Name != name {
				return false
			}
		case *ast.BlockStmt:
			if st.GetBlockName() != name {
				return false
			}
		}
		return s.findUnready(appendReferences(nil, st)) != nil
	})
}

// SpanOf returns the position of an attribute or block inside b by its path,
// such as "forward_to" or "endpoint.url". It is the position of the first block
// of that name, or of the value of an attribute. If there is none, it returns
// b's own Span.
func (b *Block) SpanOf(path string) Span {
	body := b.stmt.Body
	span := b.Span
next:
	for path != "" {
		for _, s := range body {
			switch s := s.(type) {
			case *ast.AttributeStmt:
				if s.Name.Name == path {
					return spanOf(s.Value)
				}
			case *ast.BlockStmt:
				name := s.GetBlockName()
				if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || rest[0] == '.') {
					span, body, path = headerSpan(s), s.Body, strings.TrimPrefix(rest, ".")
					continue next
				}
			}
		}
		break
	}
	return span
}
