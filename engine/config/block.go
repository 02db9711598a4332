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
	// ID is name.label, or the name of a block without label: the node's name
	// in the graph.
	ID string
	// Name is the block's name, such as prometheus.scrape.
	Name string
	// Label is an identifier, or empty.
	Label string
	// Span is where its name and label are.
	Span

	stmt *ast.BlockStmt
	refs []Reference
	// of are the references in each expression that has been decoded: a block
	// inside of a declare is decoded for each instance.
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

// aside is in the IDs of blocks that are defined twice.
const aside = " (block "

// setAside gives the block, which is defined twice, an ID that nothing can refer
// to.
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

// LabelRule says whether a block has a label.
type LabelRule uint8

// The label is required, forbidden, or as the user likes.
const (
	LabelRequired LabelRule = iota
	LabelForbidden
	LabelOptional
)

// CheckLabel returns the mistake in a block's label, if there is one. That
// labels are identifiers has been checked by Load.
func (b *Block) CheckLabel(rule LabelRule) (ds Diagnostics) {
	switch {
	case rule == LabelRequired && b.Label == "":
		ds.add(b.Span, fmt.Sprintf("block %s needs a label", b.Name), fmt.Sprintf(`write: %s "default" {`, b.Name))
	case rule == LabelForbidden && b.Label != "":
		ds.add(b.Span, fmt.Sprintf("block %s takes no label", b.Name), fmt.Sprintf("there is only one: write: %s {", b.Name))
	}
	return ds
}

// inModules are blocks with a meaning inside of a declare only.
var inModules = map[string]bool{"argument": true, "export": true}

// withoutEffect are blocks of Alloy that weir accepts and ignores.
var withoutEffect = map[string]bool{"livedebugging": true, "tracing": true}

// knownBlocks are blocks with a meaning of their own, which no declare can have
// the name of.
var knownBlocks = map[string]bool{"declare": true, "foreach": true, "import": true, "template": true, "logging": true, "module_path": true, "remotecfg": true}

// IsBlock reports whether a name is that of a block, or the beginning of one,
// that means the same everywhere.
func IsBlock(name string) bool {
	return knownBlocks[name] || inModules[name] || withoutEffect[name]
}

// ofLanguage are blocks that no catalog knows.
var ofLanguage = []string{"declare", "foreach", "import.file", "import.scripts", "import.string"}

// Unsupported lists the blocks that weir knows of but does not have, each with
// what to use instead. A name that ends in ".*" stands for all names that begin
// with what is before the star.
type Unsupported map[string]string

// Find returns what to use instead of a block, and whether it is in the list.
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

// Suggest returns a hint at the names that a misspelt name may stand for, ""
// when none is near. names are those that mean something.
func (u Unsupported) Suggest(name string, names []string) string {
	near := nearest(name, slices.Concat(names, slices.Collect(maps.Keys(u))))
	if len(near) == 0 {
		return ""
	}
	if i := slices.IndexFunc(near, func(n string) bool { return u[n] == "" }); i > 0 { // weir has it
		near = append([]string{near[i]}, slices.Delete(near, i, i+1)...)
	}
	near = slices.DeleteFunc(near, func(n string) bool { return n != near[0] && u[n] != "" })
	hint := didYouMean(near)
	if instead := u[near[0]]; instead != "" {
		hint += " It is not supported: " + instead
	}
	return hint
}

// Check reports whether a block's name is one of names, which are all those
// that mean something now. When it is not, the diagnostics say what is wrong
// with it; a warning if it is one that weir ignores, and may then be skipped.
// files are the paths at which a file would make the name one of names.
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

// Settled reports whether all that an attribute or block of b refers to is
// known, as is nothing of one that is not there.
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

// SpanOf returns where an attribute or block inside of b is, by its path such
// as "forward_to" or "endpoint.url": the first one of that name, its value for
// an attribute. b's own Span when there is none.
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
