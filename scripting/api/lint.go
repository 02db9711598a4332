package api

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// Known is a linter's information about a value: its entry in the table.
// Nothing is known about a nil Known.
type Known struct {
	Name   string // name in messages
	Object *scripting.ObjectType
	Module *scripting.Module
	Fn     *scripting.Function
	Method bool                  // Fn is called as a method,
	Of     *scripting.ObjectType // of an object of this type
	Fields map[string]*Known     // declared members of the definition,
	What   string                // the kind of such a member,
	Where  string                // and the key that declares it
	Yields []*Known              // of an iterator
	Rest   bool                  // the iterator returns any number of values after Yields
	Plain  bool                  // it is a text, a number or a boolean
	Own    any                   // additional information of a language
}

// Rules determine what is known of a value's members, from the table of the API
// and the definition. The linters of all languages use them.
type Rules struct {
	Table   *Table
	Def     *scripting.Definition // nil if the file's definition is unknown
	Modules map[string]*scripting.Module
	// Spell returns the spelling of a declared name in the language.
	Spell func(name string) string
	// Length is the field with the number of records, or "" if the language uses
	// #.
	Length string
	// Series returns the error for ctx.x in hooks whose result is cached.
	Series func(what string) error
	// Instead returns a replacement for a missing member. If it is "" or Instead
	// is nil, the hint lists the members.
	Instead func(owner *Known, name string) string
	// Say reports a finding at a name. at is a position in the form of the
	// language.
	Say func(id string, warning bool, at int, name string, err error, hint string)
}

// Member returns what is known of owner.name. A missing member is a finding.
func (r *Rules) Member(owner *Known, name string, at int) *Known {
	switch {
	case owner == nil:
		return nil
	case owner.Fields != nil:
		k, ok := owner.Fields[name]
		if !ok {
			names := slices.Sorted(maps.Keys(owner.Fields))
			r.Say(scripting.LintUnknownMember, false, at, name, fmt.Errorf("there is no %s %q: declare it in %s", owner.What, name, owner.Where), config.DidYouMean(name, names))
		}
		return k
	case owner.Module != nil:
		return r.inModule(owner, name, at)
	case owner.Object != nil:
		return r.inObject(owner, name, at)
	}
	return nil
}

func (r *Rules) inModule(owner *Known, key string, at int) *Known {
	m, name := owner.Module, owner.Name+"."+key
	for i := range m.Funcs {
		if f := &m.Funcs[i]; r.Spell(f.Name) == key {
			return &Known{Fn: f, Name: name}
		}
	}
	var names []string
	for _, c := range m.Consts {
		if r.Spell(c.Name) == key {
			return nil
		}
		names = append(names, r.Spell(c.Name))
	}
	for _, part := range m.Tables {
		if r.Spell(part.Name) == key {
			return &Known{Module: part, Name: name}
		}
		names = append(names, r.Spell(part.Name))
	}
	for i := range m.Funcs {
		names = append(names, r.Spell(m.Funcs[i].Name))
	}
	r.Say(scripting.LintUnknownMember, false, at, key, fmt.Errorf("module %s has no %q", owner.Name, key), config.DidYouMean(key, names))
	return nil
}

func (r *Rules) inObject(owner *Known, key string, at int) *Known {
	t := owner.Object
	for i := range t.Methods {
		if f := &t.Methods[i]; r.Spell(f.Name) == key {
			r.needed(owner, key, at)
			return &Known{Fn: f, Name: owner.Name + "." + key, Method: !r.dotted(owner), Of: t}
		}
	}
	for i := range t.Fields {
		if f := &t.Fields[i]; r.Spell(f.Name) == key {
			r.needed(owner, key, at)
			return r.Value(f, owner.Name+"."+key)
		}
	}
	if t == r.Table.Labels || t == r.Table.Metadata || len(t.Fields)+len(t.Methods) == 0 {
		return nil // any name is allowed
	}
	id, err, hint := scripting.LintUnknownMember, Unknown(r.spelt(t), key), ""
	if r.Instead != nil {
		hint = r.Instead(owner, key)
	}
	switch {
	case t == r.Table.Series && slices.Contains(Members(r.Table.Record), key):
		id = scripting.LintSeriesHook
		err = fmt.Errorf("cannot read %s in series: the hook can read only labels because its result is cached; use metrics", key)
	case t == r.Table.Remembered && slices.Contains(Members(r.spelt(r.Table.Context)), key):
		id = scripting.LintSeriesHook
		err = r.Series("ctx." + key)
	}
	r.Say(id, false, at, key, err, hint)
	return nil
}

// spelt returns a type whose members have the spelling of the language.
func (r *Rules) spelt(t *scripting.ObjectType) *scripting.ObjectType {
	out := *t
	out.Fields, out.Methods = slices.Clone(t.Fields), slices.Clone(t.Methods)
	for i := range out.Fields {
		out.Fields[i].Name = r.Spell(out.Fields[i].Name)
	}
	for i := range out.Methods {
		out.Methods[i].Name = r.Spell(out.Methods[i].Name)
	}
	if r.Length != "" && t.Len != nil {
		out.Fields = append([]scripting.Param{{Name: r.Length}}, out.Fields...)
		out.Index = nil // which is listed as #batch
	}
	return &out
}

// Set checks an assignment to a field.
func (r *Rules) Set(owner *Known, name string, at int) {
	switch {
	case owner == nil:
	case owner.Module != nil:
		r.Say(scripting.LintReadOnly, false, at, name, fmt.Errorf("cannot assign to %s.%s: it is read-only", owner.Name, name), "")
	case owner.Object == nil || owner.Object == r.Table.Labels, owner.Object == r.Table.Metadata:
	case owner.Object == r.Table.Arguments:
		r.Say(scripting.LintReadOnly, false, at, name, fmt.Errorf("cannot assign to ctx.args.%s: it is read-only", name), "")
	default:
		if t := r.spelt(owner.Object); !slices.Contains(Settable(t), name) {
			r.Say(scripting.LintReadOnly, false, at, name, CannotSet(t, name), "")
		}
	}
}

// needed reports a part of ctx that is missing in the script's needs.
func (r *Rules) needed(owner *Known, key string, at int) {
	if r.Def == nil || owner.Object != r.Table.Context {
		return
	}
	n := r.Def.Needs
	has, known := map[string]bool{"http": n.HTTP, "env": len(n.Env) > 0, "read": n.Read, "exec": n.Exec}[key]
	if known && !has {
		assign := " ="
		if r.Spell("a_b") == "aB" {
			assign = ":"
		}
		r.Say(scripting.LintMissingNeed, false, at, key, fmt.Errorf("cannot use ctx.%s: the script does not say that it needs it", key),
			fmt.Sprintf("write needs%s { %s%s … } in the definition; 'weir doc %s' tells more", assign, key, assign, "weir."+string(r.Def.Kind)))
	}
}

// plain are the kinds of values that have no members and cannot be called.
var plain = map[scripting.Kind]bool{scripting.KindString: true, scripting.KindInt: true, scripting.KindNumber: true, scripting.KindBool: true}

// Called checks a value that is called as a function, and reports whether that
// is an error.
func (r *Rules) Called(k *Known, word string, at int) bool {
	var functions []string
	switch {
	case k == nil || k.Fn != nil || k.Yields != nil:
		return false
	case k.Object != nil:
		functions = r.functions(k.Object.Methods)
	case k.Module != nil:
		functions = r.functions(k.Module.Funcs)
	case !k.Plain:
		return false
	}
	hint := ""
	switch {
	case k.Object == r.Table.Log:
		hint = "write " + k.Name + ".info(…); there is also debug, warn and error"
	case len(functions) > 0 && len(functions) <= maxListed:
		hint = k.Name + " has " + list(functions)
	}
	r.Say(scripting.LintNotFunction, false, at, word, fmt.Errorf("cannot call %s: it is not a function", k.Name), hint)
	return true
}

// maxListed is the maximum number of functions in a hint.
const maxListed = 12

func (r *Rules) functions(fs []scripting.Function) (names []string) {
	for i := range fs {
		names = append(names, r.Spell(fs[i].Name)+"()")
	}
	return names
}

// Value returns what is known of a field or parameter.
func (r *Rules) Value(p *scripting.Param, name string) *Known {
	if p.Kind != scripting.KindObject || p.Type == nil || len(p.Or) > 0 {
		if plain[p.Kind] && !p.Optional && len(p.Or) == 0 {
			return &Known{Name: name, Plain: true}
		}
		return nil
	}
	switch {
	case (p.Type == r.Table.Arguments || name == "ctx.state") && r.Def == nil:
		return nil // another file, whose arguments are unknown
	case p.Type == r.Table.Arguments:
		return r.arguments(r.Def.Args, name)
	case name == "ctx.state":
		k := &Known{Object: p.Type, Name: name, What: "state", Where: "state", Fields: map[string]*Known{}}
		for _, st := range r.Def.State {
			t := host.StateType(st.Kind)
			k.Fields[st.Name] = &Known{Object: t, Name: t.Name}
		}
		return k
	}
	return &Known{Object: p.Type, Name: name}
}

// arguments returns what is known of ctx.args, or of a block in it.
func (r *Rules) arguments(args []*scripting.Arg, name string) *Known {
	k := &Known{Object: r.Table.Arguments, Name: name, What: "argument", Where: "args", Fields: map[string]*Known{}}
	for _, a := range args {
		var in *Known
		switch {
		case a.Kind == scripting.ArgBlock && !a.Repeated:
			in = r.arguments(a.Fields, name+"."+a.Name)
		case a.Kind == scripting.ArgRegexp && r.Modules["re"] != nil && len(r.Modules["re"].Types) > 0:
			in = &Known{Object: r.Modules["re"].Types[0], Name: name + "." + a.Name}
		}
		k.Fields[a.Name] = in
	}
	return k
}

// dotted reports whether the functions of an object are called with a dot in
// Lua.
func (r *Rules) dotted(k *Known) bool {
	t := r.Table
	return k.Object == t.Context || k.Object == t.Remembered || k.Object == t.Log || slices.Contains(t.Parts(), k.Object)
}

// Result returns what is known of the first result of a function.
func (r *Rules) Result(f *Known) *Known {
	res := f.Fn.Result
	switch res.Kind {
	case scripting.KindObject:
		if res.Type != nil {
			return &Known{Object: res.Type, Name: res.Type.Name}
		}
	case scripting.KindSequence:
		k := &Known{Name: f.Name}
		for i := range res.Yields {
			if res.Yields[i].Rest {
				k.Rest = true
				continue
			}
			k.Yields = append(k.Yields, r.Value(&res.Yields[i], res.Yields[i].Name))
		}
		return k
	}
	return nil
}

// Parameters returns what is known of the parameters of a callback.
func (r *Rules) Parameters(p *scripting.Param) []*Known {
	if p.Call == nil {
		return nil
	}
	out := make([]*Known, len(p.Call.Params))
	for i := range out {
		q := &p.Call.Params[i]
		if out[i] = r.Value(q, q.Name); p.Name == "send" && q.Type == r.Table.Batch && (r.Def == nil || r.Def.Accepts()&batch.SignalLogs != 0) {
			out[i] = nil // a batch of either signal
		}
	}
	return out
}

// Options returns the alternative of p that is a table with all keys, or p if
// there is none.
func Options(p *scripting.Param, keys []string) *scripting.Param {
	fits := func(p *scripting.Param) bool {
		for _, key := range keys {
			if !slices.ContainsFunc(p.Fields, func(q scripting.Param) bool { return q.Name == key }) {
				return false
			}
		}
		return true
	}
	for i := range p.Or {
		if or := &p.Or[i]; p.Fields != nil && or.Fields != nil && !fits(p) && fits(or) {
			return or
		}
	}
	return p
}

// Open reports whether p is or may be a table with arbitrary keys.
func Open(p *scripting.Param) bool {
	open := func(p scripting.Param) bool {
		return p.Kind == scripting.KindMap && p.Fields == nil || p.Kind == scripting.KindList || p.Kind == scripting.KindAny
	}
	return p.Fields == nil || slices.ContainsFunc(p.Or, open)
}
