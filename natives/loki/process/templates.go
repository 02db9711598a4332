package process

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"
)

// noFunctions are the functions of sprig that templates cannot use, because they
// read more than the line.
var noFunctions = []string{"env", "expandenv", "getHostByName"}

// templateFunctions returns the functions that templates can call: those of
// sprig, and those of Promtail, whose names begin with capitals.
var templateFunctions = sync.OnceValue(func() template.FuncMap {
	fs := sprig.TxtFuncMap()
	for _, f := range noFunctions {
		delete(fs, f)
	}
	maps.Copy(fs, template.FuncMap{
		"ToLower":    strings.ToLower,
		"ToUpper":    strings.ToUpper,
		"Trim":       strings.Trim,
		"TrimLeft":   strings.TrimLeft,
		"TrimRight":  strings.TrimRight,
		"TrimPrefix": strings.TrimPrefix,
		"TrimSuffix": strings.TrimSuffix,
		"TrimSpace":  strings.TrimSpace,
		"Hash": func(salt, s string) string {
			sum := sha3.Sum256([]byte(salt + s))
			return hex.EncodeToString(sum[:])
		},
		"Sha2Hash": func(salt, s string) string {
			sum := sha256.Sum256([]byte(salt + s))
			return hex.EncodeToString(sum[:])
		},
	})
	maps.Copy(fs, boundedFunctions())
	return fs
})

// parseTemplate compiles an attribute.
func parseTemplate(attr, src string) (*template.Template, error) {
	t, err := template.New(attr).Funcs(templateFunctions()).Parse(src)
	if err == nil {
		for _, t := range t.Templates() {
			if t.Tree != nil {
				checkLoops(t.Root)
			}
		}
		return t, nil
	}
	for _, f := range noFunctions {
		if strings.Contains(err.Error(), fmt.Sprintf("function %q not defined", f)) {
			return nil, fmt.Errorf("%s: cannot call %s: templates see the line only; write sys.env in the config instead", attr, f)
		}
	}
	return nil, fmt.Errorf("cannot parse %w", err)
}

// templateData is the data for the templates of one stage: the extracted values
// that they name, or all of them.
type templateData struct {
	names []string
	slots []int
	all   bool
	to    map[string]any
}

// newTemplateData declares the values that t reads, except Value and Entry, which
// the stages add.
func newTemplateData(c *compiler, t *template.Template) *templateData {
	d := &templateData{}
	names := map[string]bool{}
	for _, t := range t.Templates() {
		if t.Tree != nil && asksForAll(t.Root, names) {
			d.all = true
		}
	}
	if d.all {
		c.readAll()
		return d
	}
	for name := range names {
		if name != "Value" && name != "Entry" {
			d.names, d.slots = append(d.names, name), append(d.slots, c.read(name))
		}
	}
	return d
}

// fill returns the data for a row. It is valid until the next call.
func (d *templateData) fill(p *pass, row int) map[string]any {
	if d.to == nil {
		d.to = map[string]any{}
	}
	clear(d.to)
	if d.all {
		p.each(row, func(name string, v value) {
			if s, ok := v.str(); ok {
				d.to[name] = s
			}
		})
		return d.to
	}
	for i, slot := range d.slots {
		if s, ok := p.get(slot, row).str(); ok {
			d.to[d.names[i]] = s
		}
	}
	return d.to
}

// asksForAll adds the names of the fields that a template reads to names. It
// reports whether the template reads all of them, as {{ . }} and {{ index . "a-b"
// }} do.
func asksForAll(n parse.Node, names map[string]bool) bool {
	all := false
	var walk func(n parse.Node)
	list := func(l *parse.ListNode) {
		if l != nil {
			walk(l)
		}
	}
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe)
		list(b.List)
		list(b.ElseList)
	}
	walk = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ListNode:
			for _, m := range n.Nodes {
				walk(m)
			}
		case *parse.ActionNode:
			walk(n.Pipe)
		case *parse.PipeNode:
			for _, c := range n.Cmds {
				walk(c)
			}
		case *parse.CommandNode:
			for _, a := range n.Args {
				walk(a)
			}
		case *parse.FieldNode:
			names[n.Ident[0]] = true
		case *parse.ChainNode:
			walk(n.Node)
		case *parse.VariableNode:
			if n.Ident[0] == "$" && len(n.Ident) > 1 {
				names[n.Ident[1]] = true
			} else if n.Ident[0] == "$" {
				all = true
			}
		case *parse.DotNode:
			all = true
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.TemplateNode:
			if n.Pipe != nil {
				walk(n.Pipe)
			}
		}
	}
	walk(n)
	return all
}
