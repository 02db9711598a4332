package lua

import (
	"fmt"
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
		owner := l.used(e.Object, sc)
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
		return &known{Own: kept{local: e, scope: sc}}
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

// used visits an expression that is called or indexed, which nil cannot be.
func (l *linter) used(e ast.Expr, sc *lintScope) *known {
	before := len(l.missing)
	k := l.expr(e, sc)
	if id, ok := e.(*ast.IdentExpr); ok {
		for i := range l.missing[before:] {
			l.missing[before+i].fails = true
		}
		l.never(k, id.Line())
	}
	return k
}

func (l *linter) ident(e *ast.IdentExpr, sc *lintScope) *known {
	if k, _, ok := sc.find(e.Value); ok {
		return k
	}
	k, ok := l.globals[e.Value]
	if !ok {
		l.missing = append(l.missing, nilUse{e: e})
	}
	if e.Value == "require" {
		return &known{Own: kept{require: true}}
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
		if owner.Object != nil && owner.Object.Element != nil {
			return &known{Object: owner.Object.Element, Name: owner.Object.Element.Name}
		}
		return nil
	}
	if lib := ownOf(owner).library; lib != nil && !lib[key.Value] {
		l.reads[owner.Name+"."+key.Value]++
		return &known{Name: owner.Name + "." + key.Value, Own: kept{absent: owner.Name + "." + key.Value}}
	}
	return l.rules.Member(owner, key.Value, key.Line())
}

// call visits a call and returns what is known of its first result.
func (l *linter) call(e *ast.FuncCallExpr, sc *lintScope) *known {
	var f *known
	args := e.Args
	if e.Receiver != nil {
		owner := l.used(e.Receiver, sc)
		f = l.member(owner, methodOf(e))
		if owner != nil && f != nil && f.Fn != nil && !f.Method && owner.Module != nil {
			f = nil // a module's function with the module as argument: it takes what it takes
		}
	} else {
		l.overObject(e, sc)
		f = l.used(e.Func, sc)
		if f != nil && f.Fn != nil && f.Method {
			if len(args) == 0 || !l.mayBeObject(args[0], sc) {
				l.addFinding(scripting.LintMissingColon, false, e.Line(), f.Fn.Name, fmt.Errorf("cannot call %s without its %s: write a colon, %s", f.Name, owning(f.Name), colon(f.Name)), "")
			}
			l.exprs(args, sc)
			return l.rules.Result(f)
		}
	}
	if f == nil || f.Fn == nil {
		if name := ownOf(f).absent; name != "" {
			if _, direct := e.Func.(*ast.AttrGetExpr); direct { // a local may be asked for first
				l.calls[name] = append(l.calls[name], e.Line())
			}
		} else if f != nil && !l.test && !computed(e.Func) {
			l.rules.Called(f, last(f.Name), e.Line())
		}
		if ownOf(f).require && len(args) == 1 {
			return l.required(args[0])
		}
		l.exprs(args, sc)
		return nil
	}
	l.checkArguments(e, f, args, sc)
	l.eachRecord(e, f, sc)
	return l.rules.Result(f)
}

// methodOf returns the member that a call of a method reads.
func methodOf(e *ast.FuncCallExpr) *ast.AttrGetExpr {
	key := &ast.StringExpr{Value: e.Method}
	key.SetLine(e.Line())
	return &ast.AttrGetExpr{Object: e.Receiver, Key: key}
}

// computed reports whether an expression is a member whose name is not written.
func computed(e ast.Expr) bool {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	_, named := get.Key.(*ast.StringExpr)
	return !named
}

// mayBeObject reports whether an argument can stand for the object of a method.
func (l *linter) mayBeObject(arg ast.Expr, sc *lintScope) bool {
	switch arg.(type) {
	case *ast.IdentExpr, *ast.AttrGetExpr, *ast.FuncCallExpr, *ast.Comma3Expr, *ast.LogicalOpExpr:
		k := l.expr(arg, sc)
		return k == nil || k.Object != nil
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
		return &known{Module: m, Name: s.Value}
	}
	if s.Value == "weir" {
		if k := l.globals["weir"]; k != nil { // of a test file
			return k
		}
		return &known{Module: l.rules.Table.Weir, Name: "weir"}
	}
	return nil
}

// checkArguments looks at the arguments of a known function.
func (l *linter) checkArguments(e *ast.FuncCallExpr, f *known, args []ast.Expr, sc *lintScope) {
	params := f.Fn.Params
	open := len(args) > 0 && multiple(args[len(args)-1])
	rest := len(params) > 0 && params[len(params)-1].Rest
	if len(args) > len(params) && !rest {
		// Functions that a language binds itself ignore further arguments.
		l.addFinding(scripting.LintWrongArgument, f.Fn.Fn == nil, e.Line(), f.Fn.Name, &scripting.ArgError{Func: f.Name, Msg: fmt.Sprintf("it takes %d arguments, not %d", len(params), len(args))}, "")
	}
	if f.Name == "ctx.route" && len(args) > 0 && l.rules.Def != nil {
		if s, ok := args[0].(*ast.StringExpr); ok {
			if _, err := l.rules.Def.Way(s.Value); err != nil {
				l.addFinding(scripting.LintUnknownOutput, false, s.Line(), s.Value, err, "")
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
				l.addFinding(scripting.LintWrongArgument, false, e.Line(), f.Fn.Name, &scripting.ArgError{Func: f.Name, Param: p.Name, Msg: msg}, "")
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
			l.addFinding(scripting.LintWrongArgument, false, a.Line(), f.Fn.Name, &scripting.ArgError{Func: f.Name, Param: p.Name, Msg: msg}, "")
		}
	}
	switch a := a.(type) {
	case *ast.StringExpr:
		wrong(p.Accepts(a.Value))
	case *ast.NumberExpr:
		if p.Kind == scripting.KindString && f.Fn.Fn == nil {
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
		l.beginsHook(p, e)
		l.function(e, sc, l.rules.Parameters(p), false)
	case *ast.IdentExpr:
		k := l.expr(e, sc)
		if k == nil || ownOf(k).local == nil || p.Call == nil {
			return
		}
		if key := fmt.Sprintf("%d %s", ownOf(k).local.Line(), p.Name); !l.bound[key] {
			l.bound[key] = true
			l.function(ownOf(k).local, ownOf(k).scope, l.rules.Parameters(p), false)
		}
	case *ast.TableExpr:
		p = api.Options(p, keysOf(e))
		for _, f := range e.Fields {
			key, named := f.Key.(*ast.StringExpr)
			var of *scripting.Param
			if named {
				if i := slices.IndexFunc(p.Fields, func(q scripting.Param) bool { return q.Name == key.Value }); i >= 0 {
					of = &p.Fields[i]
				} else if !api.Open(p) {
					l.addFinding(scripting.LintUnknownKey, false, key.Line(), key.Value, fmt.Errorf("there is no key %q here", key.Value), config.DidYouMean(key.Value, scripting.Names(p.Fields)))
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

// keysOf are the keys of a table: a key that is no name is one that nothing has.
func keysOf(e *ast.TableExpr) []string {
	keys := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		if key, named := f.Key.(*ast.StringExpr); named {
			keys[i] = key.Value
		}
	}
	return keys
}
