package config

import (
	"fmt"
	"path/filepath"
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

func headerSpan(stmt *ast.BlockStmt) Span {
	end := stmt.NamePos.Add(len(stmt.GetBlockName()) - 1)
	if stmt.LabelPos.Valid() {
		end = stmt.LabelPos.Add(len(stmt.Label) + 1)
	}
	return between(stmt.NamePos, end)
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

// unsupported are blocks of Alloy that weir does not have, and what to do.
var unsupported = map[string]string{
	"remotecfg":   "",
	"import.git":  "clone the repository beside the config and use import.file, which sees every pull",
	"import.http": `give the content of a remote.http to import.string: content = remote.http.modules.content`,
}

// inModules are blocks with a meaning inside of a declare only.
var inModules = map[string]bool{"argument": true, "export": true}

// withoutEffect are blocks of Alloy that weir takes and ignores.
var withoutEffect = map[string]bool{"livedebugging": true, "tracing": true}

// knownBlocks are blocks with a meaning of their own, which no declare can have
// the name of.
var knownBlocks = map[string]bool{"declare": true, "foreach": true, "import": true, "template": true, "logging": true, "module_path": true}

// IsBlock reports whether a name is that of a block, or the beginning of one,
// that means the same everywhere.
func IsBlock(name string) bool {
	_, not := unsupported[name]
	return knownBlocks[name] || inModules[name] || withoutEffect[name] || not
}

// ofLanguage are blocks that no catalog knows.
var ofLanguage = []string{"declare", "foreach", "import.file", "import.scripts", "import.string"}

// Check reports whether a block's name is one of names, which are all those
// that mean something now. When it is not, the diagnostics say what is wrong
// with it; a warning if it is one that weir ignores, and may then be skipped.
// scripts are the folders in which a file would make the name one of names.
func (b *Block) Check(names []string, scripts ...string) (known bool, ds Diagnostics) {
	for _, n := range names {
		if n == b.Name {
			return true, nil
		}
	}
	advice, unsupports := unsupported[b.Name]
	switch {
	case inModules[b.Name]:
		ds.add(b.Span, fmt.Sprintf("block %s belongs inside of a declare", b.Name), "")
	case unsupports:
		ds.add(b.Span, fmt.Sprintf("block %s is not supported yet", b.Name), advice)
	case withoutEffect[b.Name]:
		ds = append(ds, Diagnostic{Span: b.Span, Severity: Warning, Msg: fmt.Sprintf("block %s has no effect", b.Name)})
	default:
		hint := DidYouMean(b.Name, slices.Concat(names, ofLanguage))
		if hint == "" {
			hint = "`weir components` lists all there are"
			if len(scripts) > 0 {
				hint += "; a script of this name would be " + filepath.Join(scripts[0], filepath.FromSlash(strings.ReplaceAll(b.Name, ".", "/"))) + ".lua"
			}
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
		return s.unready(appendReferences(nil, st)) != nil
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
