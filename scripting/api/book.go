package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// Book is the manual of the table, the standard library and the test API.
type Book struct {
	entries []Entry
}

// Entry is the manual of one name.
type Entry struct {
	Name    string // json.decode, batch.drop_where, re.Pattern
	Head    string // the call in Lua: batch:drop_where(where); "" if Lua does not have it
	JS      string // the call in JavaScript: batch.dropWhere(where)
	Doc     string
	Area    bool     // a module or type with its own entries: Members
	Members []string // names of the members
	Params  []scripting.Param
	Fields  []scripting.Param // of a type, the keys of a definition
	Result  scripting.Result
	Calls   []scripting.FunctionExample
	Uses    []scripting.Use
	maker   string // creates the object for the examples of a method
}

// NewBook creates the manual. tests are the test APIs in the vocabularies of
// busted and vitest; they may be omitted.
func NewBook(modules []*scripting.Module, tests ...*scripting.TestAPI) *Book {
	b := &Book{}
	b.fill(modules)
	if len(tests) == 2 {
		b.tests(tests[0], tests[1])
	}
	known := map[string]bool{}
	for _, e := range b.entries {
		known[e.Name] = true
	}
	for i := range b.entries { // types without members have no entry
		e := &b.entries[i]
		e.Members = slices.DeleteFunc(e.Members, func(m string) bool { return !known[m] })
	}
	return b
}

func (b *Book) fill(modules []*scripting.Module) {
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
}

// Entries returns all entries, in the order of the manual. They must not be
// modified.
func (b *Book) Entries() []Entry { return b.entries }

func (b *Book) add(e Entry) { b.entries = append(b.entries, e) }

func (b *Book) module(m *scripting.Module) {
	own, js := moduleInJS(m.Name)
	area := Entry{Name: m.Name, Head: m.Name, JS: own, Doc: m.Doc, Area: true}
	at := len(b.entries)
	b.add(area)
	for _, c := range m.Consts {
		area.Members = append(area.Members, m.Name+"."+c.Name)
		e := Entry{Name: m.Name + "." + c.Name, Head: m.Name + "." + c.Name, JS: js(c.Name), Doc: c.Doc}
		if c.Value == scripting.Null && m.Name == "weir" {
			e.JS = "null" // which is a keyword there
		}
		b.add(e)
	}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		area.Members = append(area.Members, m.Name+"."+f.Name)
		b.add(function(m.Name+"."+f.Name, m.Name+"."+f.Name, js(f.Name), f))
	}
	for _, part := range m.Tables {
		area.Members = append(area.Members, m.Name+"."+part.Name)
	}
	for _, typ := range m.Types {
		area.Members = append(area.Members, typ.Name)
	}
	b.entries[at] = area
}

// moduleInJS returns the name of a module in JavaScript, and a function that
// returns the names of its members.
func moduleInJS(name string) (own string, member func(string) string) {
	own, prefix := name, name+"."
	switch {
	case name == "weir":
		return `"weir"`, func(f string) string { return "define" + title(f) }
	case name == "weir.test":
		own, prefix = `"weir/test"`, ""
	default:
		own = strings.TrimPrefix(name, "weir.")
		prefix = own + "."
	}
	return own, func(f string) string { return prefix + scripting.CamelCase(f) }
}

// callName returns the name of a type in the manual, and a variable name for
// its values in calls.
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

// object adds a type. prefix is written before its methods.
func (b *Book) object(name, prefix string, t *scripting.ObjectType, m *scripting.Module) {
	area := Entry{Name: name, Head: name, JS: name, Doc: t.Doc, Area: true, Fields: t.Fields}
	if len(t.Methods) == 0 && len(t.Fields) == 0 && t.Doc == "" {
		return
	}
	at := len(b.entries)
	b.add(area)
	for i := range t.Methods {
		f := &t.Methods[i]
		e := function(name+"."+f.Name, prefix+f.Name, strings.ReplaceAll(prefix, ":", ".")+scripting.CamelCase(f.Name), f)
		if m != nil {
			e.maker = m.Name + "." + t.New
		}
		area.Members = append(area.Members, e.Name)
		b.add(e)
	}
	b.entries[at] = area
}

// function returns the entry of a function. js is its name in JavaScript, or
// "".
func function(name, head, js string, f *scripting.Function) Entry {
	e := Entry{Name: name, Head: head + f.Signature(), Doc: f.Doc, Params: slices.Clone(f.Params), Result: f.Result, Calls: f.Examples, Uses: f.Uses}
	if js != "" {
		e.JS = js + jsSignature(f)
	}
	return e
}

// Find returns the entry for a name in either language, or several entries if
// the name is the last part of theirs.
func (b *Book) Find(name string) ([]Entry, error) {
	name = strings.TrimSuffix(strings.ReplaceAll(name, ":", "."), "()")
	var found []Entry
	var names []string
	for _, e := range b.entries {
		js, _, _ := strings.Cut(e.JS, "(")
		if e.Name == name {
			return []Entry{e}, nil
		}
		if js == name || last(e.Name) == name || last(js) == name {
			found = append(found, e)
		}
		names = append(names, e.Name, last(e.Name), js, last(js))
	}
	if whole := slices.IndexFunc(found, func(e Entry) bool { js, _, _ := strings.Cut(e.JS, "("); return js == name }); whole >= 0 {
		return found[whole : whole+1], nil
	}
	if found != nil {
		return found, nil
	}
	// The entry of a field is that of its owner.
	owner, field, _ := cutLast(name)
	is := func(p scripting.Param, name string) bool {
		return p.Name == name || scripting.CamelCase(p.Name) == name
	}
	for _, e := range b.entries {
		if e.Name == owner && slices.ContainsFunc(e.Fields, func(p scripting.Param) bool { return is(p, field) }) {
			return []Entry{e}, nil
		}
	}
	for _, e := range b.entries { // the same for a key of a definition, without its owner
		for _, p := range e.Fields {
			names = append(names, p.Name)
			if !is(p, name) || e.Area {
				continue
			}
			k := key(e.Name, p)
			if i := slices.IndexFunc(found, func(e Entry) bool { return e.Doc == k.Doc }); i >= 0 { // a key of several kinds
				_, maker := moduleInJS("weir")
				found[i].Head += ", " + e.Name
				found[i].JS += ", " + maker(last(e.Name))
				continue
			}
			found = append(found, k)
		}
	}
	if found != nil {
		return found, nil
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	if hint := config.DidYouMean(name, slices.Compact(names)); hint != "" {
		return nil, fmt.Errorf("there is nothing called %s; %s", name, hint)
	}
	return nil, fmt.Errorf("there is nothing called %s; 'weir doc' lists all there is", name)
}

// key returns the entry of a key of a definition, without the other keys.
func key(owner string, p scripting.Param) Entry {
	_, js := moduleInJS("weir")
	maker := js(strings.TrimPrefix(owner, "weir."))
	name := scripting.CamelCase(p.Name)
	e := Entry{Name: owner + "." + p.Name, Head: p.Name + " of " + owner, JS: name + " of " + maker, Doc: p.Doc, Fields: p.Fields}
	if p.Call != nil {
		e.Head, e.JS, e.Params = p.Name+p.Call.Signature()+" of "+owner, name+jsSignature(p.Call)+" of "+maker, p.Call.Params
	}
	return e
}

// last returns the part of a name after its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
