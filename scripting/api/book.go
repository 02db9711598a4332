package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// Book is the manual: the table, the standard library and what tests have.
type Book struct {
	entries []Entry
}

// Entry is what there is to read about one name.
type Entry struct {
	Name    string // json.decode, batch.drop_where, re.Pattern
	Head    string // how it is called: batch:drop_where(where)
	Doc     string
	Area    bool     // a module or type, with entries of its own: Members
	Members []string // their names
	Params  []scripting.Param
	Fields  []scripting.Param // of a type, the keys of a definition
	Result  scripting.Result
	Calls   []scripting.FunctionExample
	Uses    []scripting.Use
	maker   string // what makes the object of a method's Calls
}

// NewBook makes the manual. tests is what test files have; nil: nothing.
func NewBook(modules []*scripting.Module, tests *scripting.TestAPI) *Book {
	b := &Book{}
	b.fill(modules, tests)
	known := map[string]bool{}
	for _, e := range b.entries {
		known[e.Name] = true
	}
	for i := range b.entries { // types without anything in them have no entry
		e := &b.entries[i]
		e.Members = slices.DeleteFunc(e.Members, func(m string) bool { return !known[m] })
	}
	return b
}

func (b *Book) fill(modules []*scripting.Module, tests *scripting.TestAPI) {
	t := Get()
	for _, m := range t.Modules() {
		b.module(m)
	}
	for i := range b.entries {
		e := &b.entries[i]
		if keys, ok := t.Keys[scripting.ComponentKind(strings.TrimPrefix(e.Name, "weir."))]; ok {
			e.Params[0].Fields, e.Fields = nil, keys
		}
	}
	for _, typ := range t.Types() {
		sep := ":"
		if strings.HasPrefix(typ.Name, "ctx") {
			sep = "."
		}
		name, variable := t.callName(typ)
		b.object(name, variable+sep, typ, nil)
	}
	for _, m := range modules {
		b.module(m)
		for _, typ := range m.Types {
			b.object(typ.Name, typ.Name+":", typ, m)
		}
	}
	if tests == nil {
		return
	}
	globals := &scripting.Module{Name: "test", Doc: "What a test file has beside what a script has.", Funcs: tests.Globals}
	b.module(globals)
	b.module(tests.Weir)
	for _, typ := range tests.Weir.Types {
		b.object("test."+typ.Name, typ.Name+":", typ, nil)
	}
	b.module(&scripting.Module{
		Name: "assert", Funcs: tests.Assertions,
		Doc: "Assertions. Each also with is_, is_not_, has_ or has_no_ before its name; a last argument is the message.",
	})
	for _, m := range tests.Tables {
		b.module(m)
	}
}

// Entries are all, in the order of the manual. They are not written to.
func (b *Book) Entries() []Entry { return b.entries }

func (b *Book) add(e Entry) { b.entries = append(b.entries, e) }

func (b *Book) module(m *scripting.Module) {
	area := Entry{Name: m.Name, Head: m.Name, Doc: m.Doc, Area: true}
	at := len(b.entries)
	b.add(area)
	for _, c := range m.Consts {
		area.Members = append(area.Members, m.Name+"."+c.Name)
		b.add(Entry{Name: m.Name + "." + c.Name, Head: m.Name + "." + c.Name, Doc: c.Doc})
	}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		head := m.Name + "." + f.Name
		if m.Name == "test" {
			head = f.Name
		}
		area.Members = append(area.Members, m.Name+"."+f.Name)
		b.add(function(m.Name+"."+f.Name, head, f))
	}
	for _, part := range m.Tables {
		area.Members = append(area.Members, m.Name+"."+part.Name)
	}
	for _, typ := range m.Types {
		area.Members = append(area.Members, typ.Name)
	}
	b.entries[at] = area
}

// callName is what people type to read about a type, and what stands for a value
// of it in its calls.
func (t *Table) callName(typ *scripting.ObjectType) (name, variable string) {
	switch typ {
	case t.Copy:
		return "copy", "copy"
	case t.Series:
		return "series", "s"
	case t.Stream:
		return "stream", "s"
	case t.Logs:
		return "logs", "batch"
	case t.Line:
		return "line", "line"
	case t.LineCopy:
		return "line_copy", "copy"
	case t.LineGroup:
		return "line_group", "group"
	case t.Remembered:
		return "series_ctx", "ctx"
	}
	return typ.Name, typ.Name
}

// object adds a type; prefix is what stands before its methods.
func (b *Book) object(name, prefix string, t *scripting.ObjectType, m *scripting.Module) {
	area := Entry{Name: name, Head: name, Doc: t.Doc, Area: true, Fields: t.Fields}
	if len(t.Methods) == 0 && len(t.Fields) == 0 && t.Doc == "" {
		return
	}
	at := len(b.entries)
	b.add(area)
	for i := range t.Methods {
		e := function(name+"."+t.Methods[i].Name, prefix+t.Methods[i].Name, &t.Methods[i])
		if m != nil {
			e.maker = m.Name + "." + t.New
		}
		area.Members = append(area.Members, e.Name)
		b.add(e)
	}
	b.entries[at] = area
}

func function(name, head string, f *scripting.Function) Entry {
	return Entry{Name: name, Head: head + f.Signature(), Doc: f.Doc, Params: slices.Clone(f.Params), Result: f.Result, Calls: f.Examples, Uses: f.Uses}
}

// Find returns what a name means: one entry, or several whose last part it is.
func (b *Book) Find(name string) ([]Entry, error) {
	name = strings.TrimSuffix(strings.ReplaceAll(name, ":", "."), "()")
	var found []Entry
	var names []string
	for _, e := range b.entries {
		if e.Name == name {
			return []Entry{e}, nil
		}
		last := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
		if last == name {
			found = append(found, e)
		}
		names = append(names, e.Name, last)
	}
	if found != nil {
		return found, nil
	}
	// A field is told with what has it.
	owner, field, _ := cutLast(name)
	for _, e := range b.entries {
		if e.Name == owner && slices.ContainsFunc(e.Fields, func(p scripting.Param) bool { return p.Name == field }) {
			return []Entry{e}, nil
		}
	}
	for _, e := range b.entries { // so is a key of a definition, without its owner
		for _, p := range e.Fields {
			names = append(names, p.Name)
			if p.Name == name && !e.Area {
				found = append(found, key(e.Name, p))
			}
		}
	}
	if found != nil {
		return found, nil
	}
	slices.Sort(names)
	if hint := config.DidYouMean(name, slices.Compact(names)); hint != "" {
		return nil, fmt.Errorf("there is nothing called %s; %s", name, hint)
	}
	return nil, fmt.Errorf("there is nothing called %s; 'weir doc' lists all there is", name)
}

// key is the entry of a key of a definition, without the others.
func key(owner string, p scripting.Param) Entry {
	e := Entry{Name: owner + "." + p.Name, Head: p.Name + " of " + owner, Doc: p.Doc, Fields: p.Fields}
	if p.Call != nil {
		e.Head, e.Params = p.Name+p.Call.Signature()+" of "+owner, p.Call.Params
	}
	return e
}

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
