package lua

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// expr visits an expression and returns what is known of its value.
func (l *linter) expr(e ast.Expr, sc *lintScope) *known {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return l.ident(e, sc)
	case *ast.AttrGetExpr:
		owner := l.expr(e.Object, sc)
		l.expr(e.Key, sc)
		return l.member(owner, e)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				l.expr(f.Key, sc)
			}
			l.expr(f.Value, sc)
		}
	case *ast.FuncCallExpr:
		return l.call(e, sc)
	case *ast.FunctionExpr:
		l.function(e, sc, nil, false)
		return &known{local: e, scope: sc}
	case *ast.LogicalOpExpr:
		l.exprs([]ast.Expr{e.Lhs, e.Rhs}, sc)
	case *ast.RelationalOpExpr:
		l.exprs([]ast.Expr{e.Lhs, e.Rhs}, sc)
	case *ast.ArithmeticOpExpr:
		l.exprs([]ast.Expr{e.Lhs, e.Rhs}, sc)
	case *ast.StringConcatOpExpr:
		l.exprs([]ast.Expr{e.Lhs, e.Rhs}, sc)
	case *ast.UnaryMinusOpExpr:
		l.expr(e.Expr, sc)
	case *ast.UnaryNotOpExpr:
		l.expr(e.Expr, sc)
	case *ast.UnaryLenOpExpr:
		l.expr(e.Expr, sc)
	}
	return nil
}

func (l *linter) ident(e *ast.IdentExpr, sc *lintScope) *known {
	if k, _, ok := sc.of(e.Value); ok {
		return k
	}
	k, ok := l.globals[e.Value]
	if !ok {
		l.unknownGlobal(e)
	}
	if e.Value == "require" {
		return &known{require: true}
	}
	return k
}

// member is what is known of owner.name; one that is not there is a finding.
func (l *linter) member(owner *known, e *ast.AttrGetExpr) *known {
	if owner == nil {
		return nil
	}
	key, ok := e.Key.(*ast.StringExpr)
	if !ok {
		if owner.object != nil && owner.object.Element != nil {
			return &known{object: owner.object.Element, name: owner.object.Element.Name}
		}
		return nil
	}
	switch {
	case owner.fields != nil:
		k, ok := owner.fields[key.Value]
		if !ok {
			l.undeclared(owner, key)
		}
		return k
	case owner.module != nil:
		return l.inModule(owner, key)
	case owner.object != nil:
		return l.inObject(owner, key)
	}
	return nil
}

func (l *linter) inModule(owner *known, key *ast.StringExpr) *known {
	m, name := owner.module, owner.name+"."+key.Value
	if f, ok := m.Func(key.Value); ok {
		return &known{fn: f, name: name}
	}
	var names []string
	for _, c := range m.Consts {
		if c.Name == key.Value {
			return nil
		}
		names = append(names, c.Name)
	}
	for _, part := range m.Tables {
		if part.Name == key.Value {
			return &known{module: part, name: name}
		}
		names = append(names, part.Name)
	}
	for i := range m.Funcs {
		names = append(names, m.Funcs[i].Name)
	}
	hint := config.DidYouMean(key.Value, names)
	l.say(false, key.Line(), key.Value, fmt.Errorf("module %s has no %q", owner.name, key.Value), hint)
	return nil
}

func (l *linter) inObject(owner *known, key *ast.StringExpr) *known {
	t := owner.object
	if f, ok := t.Method(key.Value); ok {
		l.needed(owner, key)
		return &known{fn: f, name: owner.name + "." + key.Value, method: !isContext(owner)}
	}
	if i := slices.IndexFunc(t.Fields, func(p scripting.Param) bool { return p.Name == key.Value }); i >= 0 {
		l.needed(owner, key)
		return l.value(&t.Fields[i], owner.name+"."+key.Value)
	}
	if t == l.table.Labels || len(t.Fields)+len(t.Methods) == 0 {
		return nil // any name may be there
	}
	err := api.Unknown(t, key.Value)
	switch {
	case t == l.table.Series && slices.Contains(api.Members(l.table.Record), key.Value):
		err = fmt.Errorf("cannot read %s in series: the hook sees labels only, because what it decides is remembered for the series; use metrics", key.Value)
	case t == l.table.Remembered && slices.Contains(api.Members(l.table.Context), key.Value):
		err = refusedInSeries("ctx." + key.Value)
	}
	l.say(false, key.Line(), key.Value, err, "")
	return nil
}

// needed finds a part of ctx that the script does not say it needs.
func (l *linter) needed(owner *known, key *ast.StringExpr) {
	if l.def == nil || owner.object != l.table.Context {
		return
	}
	n := l.def.Needs
	has, known := map[string]bool{"http": n.HTTP, "env": len(n.Env) > 0, "read": n.Read, "exec": n.Exec}[key.Value]
	if known && !has {
		l.say(false, key.Line(), key.Value, fmt.Errorf("cannot use ctx.%s: the script does not say that it needs it", key.Value),
			fmt.Sprintf("write needs = { %s = … } in the definition; 'weir doc weir.transform' tells more", key.Value))
	}
}

// value is what is known of a field or parameter.
func (l *linter) value(p *scripting.Param, name string) *known {
	if p.Kind != scripting.KindObject || p.Type == nil || len(p.Or) > 0 {
		return nil
	}
	switch {
	case p.Type == l.table.Arguments && l.def == nil, name == "ctx.state" && l.def == nil:
		return nil // another file: whose arguments they are is not known
	case p.Type == l.table.Arguments:
		return l.arguments(l.def.Args, name)
	case name == "ctx.state":
		k := &known{object: p.Type, name: name, what: "state", where: "state", fields: map[string]*known{}}
		for _, st := range l.def.State {
			t := scripting.StateType(st.Kind)
			k.fields[st.Name] = &known{object: t, name: t.Name}
		}
		return k
	}
	return &known{object: p.Type, name: name}
}

// arguments is what is known of ctx.args, or of a block in it.
func (l *linter) arguments(args []*scripting.Arg, name string) *known {
	k := &known{object: l.table.Arguments, name: name, what: "argument", where: "args", fields: map[string]*known{}}
	for _, a := range args {
		var in *known
		switch {
		case a.Kind == scripting.ArgBlock && !a.Repeated:
			in = l.arguments(a.Fields, name+"."+a.Name)
		case a.Kind == scripting.ArgRegexp && l.prog.stdlib["re"] != nil && len(l.prog.stdlib["re"].Types) > 0:
			in = &known{object: l.prog.stdlib["re"].Types[0], name: name + "." + a.Name}
		}
		k.fields[a.Name] = in
	}
	return k
}

// undeclared finds an argument or a state that the definition does not have.
func (l *linter) undeclared(owner *known, key *ast.StringExpr) {
	names := slices.Sorted(maps.Keys(owner.fields))
	l.say(false, key.Line(), key.Value, fmt.Errorf("there is no %s %q: declare it in %s", owner.what, key.Value, owner.where), config.DidYouMean(key.Value, names))
}

// isContext reports whether what an object has is called with a dot.
func isContext(k *known) bool {
	t := api.Get()
	return k.object == t.Context || k.object == t.Remembered || k.object == t.Log || slices.Contains(t.Parts(), k.object)
}

// call visits a call and returns what is known of its first result.
func (l *linter) call(e *ast.FuncCallExpr, sc *lintScope) *known {
	var f *known
	args := e.Args
	if e.Receiver != nil {
		owner := l.expr(e.Receiver, sc)
		key := &ast.StringExpr{Value: e.Method}
		key.SetLine(e.Line())
		f = l.member(owner, &ast.AttrGetExpr{Object: e.Receiver, Key: key})
		if owner != nil && f != nil && f.fn != nil && !f.method && owner.module != nil {
			f = nil // a module's function with the module as argument: it takes what it takes
		}
	} else {
		f = l.expr(e.Func, sc)
		if f != nil && f.fn != nil && f.method {
			if len(args) == 0 || !l.mayBeObject(args[0], sc) {
				l.say(false, e.Line(), f.fn.Name, fmt.Errorf("cannot call %s without its %s: write a colon, %s", f.name, owning(f.name), colon(f.name)), "")
			}
			l.exprs(args, sc)
			return l.result(f)
		}
	}
	if f == nil || f.fn == nil {
		if f != nil && f.require && len(args) == 1 {
			return l.required(args[0])
		}
		l.exprs(args, sc)
		return nil
	}
	l.given(e, f, args, sc)
	return l.result(f)
}

// mayBeObject reports whether an argument can stand for the object of a method.
func (l *linter) mayBeObject(arg ast.Expr, sc *lintScope) bool {
	switch arg.(type) {
	case *ast.IdentExpr, *ast.AttrGetExpr, *ast.FuncCallExpr, *ast.Comma3Expr, *ast.LogicalOpExpr:
		k := l.expr(arg, sc)
		return k == nil || k.object != nil
	}
	return false
}

func owning(name string) string {
	before, _, _ := cutLast(name)
	return before
}

func colon(name string) string {
	before, after, _ := cutLast(name)
	return before + ":" + after
}

func cutLast(name string) (before, after string, ok bool) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' || name[i] == ':' {
			return name[:i], name[i+1:], true
		}
	}
	return "", name, false
}

func (l *linter) required(arg ast.Expr) *known {
	s, ok := arg.(*ast.StringExpr)
	if !ok {
		return nil
	}
	if m := l.prog.stdlib[s.Value]; m != nil {
		return &known{module: m, name: s.Value}
	}
	if s.Value == "weir" {
		if k := l.globals["weir"]; k != nil { // of a test file
			return k
		}
		return &known{module: l.table.Weir, name: "weir"}
	}
	return nil
}

func (l *linter) result(f *known) *known {
	r := f.fn.Result
	switch r.Kind {
	case scripting.KindObject:
		if r.Type != nil {
			return &known{object: r.Type, name: r.Type.Name}
		}
	case scripting.KindSequence:
		k := &known{}
		for i := range r.Yields {
			k.yields = append(k.yields, l.value(&r.Yields[i], r.Yields[i].Name))
		}
		return k
	}
	return nil
}

// given looks at the arguments of a known function.
func (l *linter) given(e *ast.FuncCallExpr, f *known, args []ast.Expr, sc *lintScope) {
	params := f.fn.Params
	open := len(args) > 0 && multiple(args[len(args)-1])
	rest := len(params) > 0 && params[len(params)-1].Rest
	if len(args) > len(params) && !rest {
		// What a language binds itself does not look at more.
		l.say(f.fn.Fn == nil, e.Line(), f.fn.Name, &scripting.ArgError{Func: f.name, Msg: fmt.Sprintf("it takes %d arguments, not %d", len(params), len(args))}, "")
	}
	if f.name == "ctx.route" && len(args) > 0 && l.def != nil {
		if s, ok := args[0].(*ast.StringExpr); ok {
			if _, err := l.def.Way(s.Value); err != nil {
				l.say(false, s.Line(), s.Value, err, "")
			}
		}
	}
	for i, a := range args {
		switch {
		case i < len(params):
			l.argument(f, &params[i], a, sc)
		case rest:
			l.argument(f, &params[len(params)-1], a, sc)
		default:
			l.expr(a, sc)
		}
	}
	for i := len(args); i < len(params) && !open; i++ {
		if p := &params[i]; !p.Rest {
			if msg := p.Accepts(nil); msg != "" {
				l.say(false, e.Line(), f.fn.Name, &scripting.ArgError{Func: f.name, Param: p.Name, Msg: msg}, "")
			}
		}
	}
}

// multiple reports whether an expression may be several values.
func multiple(e ast.Expr) bool {
	switch e.(type) {
	case *ast.FuncCallExpr, *ast.Comma3Expr:
		return true
	}
	return false
}

// argument looks at one argument: a constant of the wrong kind, and functions
// whose parameters are known from here.
func (l *linter) argument(f *known, p *scripting.Param, a ast.Expr, sc *lintScope) {
	wrong := func(msg string) {
		if msg != "" {
			l.say(false, a.Line(), f.fn.Name, &scripting.ArgError{Func: f.name, Param: p.Name, Msg: msg}, "")
		}
	}
	switch a := a.(type) {
	case *ast.StringExpr:
		wrong(p.Accepts(a.Value))
	case *ast.NumberExpr:
		if p.Kind == scripting.KindString && f.fn.Fn == nil {
			return // Lua makes a text of it
		}
		if n, err := strconv.ParseFloat(a.Value, 64); err == nil {
			wrong(p.Accepts(n))
		}
	case *ast.TrueExpr, *ast.FalseExpr:
		wrong(p.Accepts(true))
	case *ast.NilExpr:
		wrong(p.Accepts(nil))
	case *ast.TableExpr, *ast.FunctionExpr, *ast.IdentExpr:
		l.visitAs(p, a, sc)
	default:
		l.expr(a, sc)
	}
}

// visitAs visits an expression of which the type is declared.
func (l *linter) visitAs(p *scripting.Param, e ast.Expr, sc *lintScope) {
	switch e := e.(type) {
	case *ast.FunctionExpr:
		l.function(e, sc, l.parameters(p), false)
	case *ast.IdentExpr:
		k := l.expr(e, sc)
		if k == nil || k.local == nil || p.Call == nil {
			return
		}
		if key := fmt.Sprintf("%d %s", k.local.Line(), p.Name); !l.bound[key] {
			l.bound[key] = true
			l.function(k.local, k.scope, l.parameters(p), false)
		}
	case *ast.TableExpr:
		p = tableOf(p, e)
		for _, f := range e.Fields {
			key, named := f.Key.(*ast.StringExpr)
			var of *scripting.Param
			if named {
				if i := slices.IndexFunc(p.Fields, func(q scripting.Param) bool { return q.Name == key.Value }); i >= 0 {
					of = &p.Fields[i]
				} else if p.Fields != nil && !slices.ContainsFunc(p.Or, isOpen) {
					l.say(false, key.Line(), key.Value, fmt.Errorf("there is no key %q here", key.Value), config.DidYouMean(key.Value, scripting.Names(p.Fields)))
				}
			} else if f.Key != nil {
				l.expr(f.Key, sc)
			}
			if of == nil {
				of = p.Of
			}
			if of == nil {
				l.expr(f.Value, sc)
				continue
			}
			l.visitAs(of, f.Value, sc)
		}
	default:
		l.expr(e, sc)
	}
}

// tableOf is which of the tables that p may be has the keys of e: one with all
// of them, else p.
func tableOf(p *scripting.Param, e *ast.TableExpr) *scripting.Param {
	fits := func(p *scripting.Param) bool {
		for _, f := range e.Fields {
			key, named := f.Key.(*ast.StringExpr)
			if !named || !slices.ContainsFunc(p.Fields, func(q scripting.Param) bool { return q.Name == key.Value }) {
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

// isOpen reports whether p is a table with any keys.
func isOpen(p scripting.Param) bool {
	return p.Kind == scripting.KindMap && p.Fields == nil || p.Kind == scripting.KindList || p.Kind == scripting.KindAny
}

// parameters are what is known of the parameters of a callback.
func (l *linter) parameters(p *scripting.Param) []*known {
	if p.Call == nil {
		return nil
	}
	out := make([]*known, len(p.Call.Params))
	for i := range out {
		out[i] = l.value(&p.Call.Params[i], p.Call.Params[i].Name)
	}
	return out
}
