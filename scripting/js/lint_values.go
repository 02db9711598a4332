package js

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// expr visits an expression and returns what is known of its value.
func (l *linter) expr(e ast.Expression, sc *lintScope) *known {
	switch e := e.(type) {
	case *ast.Identifier:
		return l.ident(e, sc)
	case *ast.DotExpression:
		return l.member(l.expr(e.Left, sc), e.Identifier.Name.String(), e.Identifier.Idx)
	case *ast.PrivateDotExpression:
		l.expr(e.Left, sc)
	case *ast.BracketExpression:
		owner := l.expr(e.Left, sc)
		if s, ok := e.Member.(*ast.StringLiteral); ok {
			return l.member(owner, s.Value.String(), s.Idx)
		}
		l.expr(e.Member, sc)
		return elementOf(owner)
	case *ast.OptionalChain:
		return l.expr(e.Expression, sc)
	case *ast.Optional:
		return l.expr(e.Expression, sc)
	case *ast.SequenceExpression:
		var k *known
		for _, part := range e.Sequence {
			k = l.expr(part, sc)
		}
		return k
	case *ast.AwaitExpression:
		k := l.expr(e.Argument, sc)
		if p := keptOf(k).promise; p != nil {
			return p
		}
		return k
	case *ast.CallExpression:
		return l.call(e, sc)
	case *ast.AssignExpression:
		l.assign(e, sc)
	case *ast.UnaryExpression:
		switch e.Operator {
		case token.INCREMENT, token.DECREMENT:
			l.write(e.Operand, sc)
		case token.DELETE:
			if dot, ok := e.Operand.(*ast.DotExpression); ok {
				l.write(dot, sc)
			}
		}
		l.inside(e, sc)
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		l.function(e, sc, nil)
		return &known{Own: kept{fn: e, scope: sc}}
	case *ast.ClassLiteral:
		l.class(e, sc)
	case *ast.PropertyKeyed:
		if e.Computed {
			l.expr(e.Key, sc)
		}
		l.expr(e.Value, sc)
	case *ast.MetaProperty:
	case *ast.RegExpLiteral:
		l.pattern(e)
	case nil:
	default:
		l.inside(e, sc)
	}
	return nil
}

func (l *linter) ident(id *ast.Identifier, sc *lintScope) *known {
	name := id.Name.String()
	if k, at := sc.find(name); at != nil {
		if name == "require" && at.up != nil && at.up.up == nil {
			return &known{Own: kept{require: true}} // the parameter require of the file's function
		}
		return k
	}
	if _, ok := l.globals[name]; !ok && !l.loose[name] && !strings.ContainsAny(name, ":\x00") {
		l.unknownName(id)
		return nil
	}
	if t := l.prog.test; t != nil {
		return testModuleOf(t.api).global(name)
	}
	return nil
}

// pattern warns of a pattern that does not run on Go's regexp.
func (l *linter) pattern(e *ast.RegExpLiteral) {
	_, err := parser.TransformRegExp(e.Pattern, strings.Contains(e.Flags, "s"), strings.Contains(e.Flags, "u"))
	if _, slow := errors.AsType[parser.RegexpErrorIncompatible](err); slow {
		l.addFinding(scripting.LintSlowPattern, true, e.Idx0(), errors.New("the pattern runs on a slower engine that backtracks: it has a lookahead, a lookbehind or a backreference"),
			"write a pattern without them, or test the rest of the text in code")
	}
}

// member returns what is known of owner.name.
func (l *linter) member(owner *known, name string, at file.Idx) *known {
	own := keptOf(owner)
	switch {
	case own.imported != nil && name == "default":
		return own.imported
	case own.imported != nil:
		return l.member(own.imported, name, at)
	case own.exports != nil:
		if !slices.Contains(own.exports, name) && name != "__esModule" {
			l.addFinding(scripting.LintUnknownMember, false, at, fmt.Errorf("%s does not export %q", own.file, name), config.DidYouMean(name, own.exports))
		}
		return nil
	case owner != nil && owner.Yields != nil:
		if name != "next" && !ofObjects[name] {
			l.addFinding(scripting.LintUnknownMember, false, at, fmt.Errorf("an iterator has no %q", name), "write for (const r of …) { … }, or [...iterator]."+name)
		}
		return nil
	case own.promise != nil:
		if !ofPromises[name] && !ofObjects[name] {
			l.addFinding(scripting.LintUnknownMember, false, at, fmt.Errorf("a promise has no %q: await it first", name), "write (await …)."+name)
		}
		return nil
	case owner == nil, ofObjects[name], asked[name], name == "length" && owner.Object != nil && owner.Object.Len != nil:
		return nil
	}
	return l.rules.Member(owner, name, int(at))
}

var ofPromises = map[string]bool{"then": true, "catch": true, "finally": true}

// ofObjects are the members of all objects.
var ofObjects = map[string]bool{
	"constructor": true, "hasOwnProperty": true, "isPrototypeOf": true, "propertyIsEnumerable": true,
	"toLocaleString": true, "toString": true, "valueOf": true, "__proto__": true,
}

// assign checks the target of an assignment.
func (l *linter) assign(e *ast.AssignExpression, sc *lintScope) {
	l.expr(e.Right, sc)
	l.write(e.Left, sc)
	switch left := e.Left.(type) {
	case *ast.DotExpression:
		owner := l.expr(left.Left, sc)
		if keptOf(owner).imported == nil {
			l.rules.Set(owner, left.Identifier.Name.String(), int(left.Identifier.Idx))
		}
	default:
		l.expr(left, sc)
	}
}

// call visits a call and returns what is known of its result.
func (l *linter) call(e *ast.CallExpression, sc *lintScope) *known {
	f := l.expr(e.Callee, sc)
	args := e.ArgumentList
	switch {
	case keptOf(f).require && len(args) == 1:
		return l.required(args[0])
	case calleeName(e.Callee) == "__toESM" && len(args) > 0:
		k := l.expr(args[0], sc)
		if k != nil && k.Module != nil {
			return &known{Own: kept{imported: k}}
		}
		return k
	case f == nil || f.Fn == nil:
		l.grown(e, sc)
		l.ofGlobal(e.Callee, sc)
		l.called(f, e.Callee)
		for _, a := range args {
			l.expr(a, sc)
		}
		return nil
	}
	fn := f.Fn.Camel()
	l.collectConstants(f, args)
	l.checkArguments(e, f, fn, sc)
	l.eachRecord(e, f, sc)
	k := l.rules.Result(f)
	if fn.Waits {
		return &known{Own: kept{promise: orUnknown(k)}}
	}
	return k
}

// orUnknown returns k, or an empty known if k is nil.
func orUnknown(k *known) *known {
	if k == nil {
		return &known{}
	}
	return k
}

// ofGlobal checks for a call of a missing member of a built-in object, such as
// Object.groupBy.
func (l *linter) ofGlobal(callee ast.Expression, sc *lintScope) {
	dot, ok := callee.(*ast.DotExpression)
	if !ok {
		return
	}
	id, ok := dot.Left.(*ast.Identifier)
	if !ok {
		return
	}
	object, name := id.Name.String(), dot.Identifier.Name.String()
	if _, at := sc.find(object); at == nil && object == "Math" && name == "random" {
		l.addFinding(scripting.LintUnknownMember, false, dot.Identifier.Idx, errors.New("cannot call Math.random: "+noRandomness), insteadOfRandom)
	}
	if _, at := sc.find(object); at != nil || l.globals[object] == nil || l.globals[object][name] || l.loose[object] || asked[name] {
		return
	}
	l.addFinding(scripting.LintUnknownMember, false, dot.Identifier.Idx, fmt.Errorf("there is no %s.%s", object, name), config.DidYouMean(name, slices.Sorted(maps.Keys(l.globals[object]))))
}

// required returns what is known of an import.
func (l *linter) required(arg ast.Expression) *known {
	s, ok := arg.(*ast.StringLiteral)
	if !ok {
		return nil
	}
	name := s.Value.String()
	if c := l.c.imports[name]; c != nil {
		if names := c.exported(); names != nil {
			return &known{Own: kept{exports: names, file: c.file.Name}}
		}
		return nil
	}
	switch {
	case name == "weir":
		return &known{Module: weirModule(l.rules.Table), Name: "weir"}
	case name == testModule && l.prog.test != nil:
		return &known{Module: testModuleOf(l.prog.test.api).module, Name: testModule}
	}
	if m := l.prog.stdlib[strings.TrimPrefix(name, libPrefix)]; m != nil {
		return &known{Module: m, Name: m.Name}
	}
	return nil
}

// weirModule returns the module weir with JavaScript names.
func weirModule(t *api.Table) *scripting.Module {
	m := &scripting.Module{Name: "weir", Tables: t.Weir.Tables}
	for _, kind := range scripting.ComponentKinds {
		if f, ok := t.Weir.Func(string(kind)); ok {
			f := *f
			f.Name = definer(kind)
			m.Funcs = append(m.Funcs, f)
		}
	}
	return m
}

// testNames contains the globals of a test file.
type testNames struct{ module *scripting.Module }

func testModuleOf(t *scripting.TestAPI) testNames {
	m := &scripting.Module{Name: testModule, Tables: t.Tables, Consts: []scripting.Const{{Name: "expect"}, {Name: "vi"}}}
	for i := range t.Globals {
		if !strings.Contains(t.Globals[i].Name, ".") {
			m.Funcs = append(m.Funcs, t.Globals[i])
		}
	}
	m.Funcs = append(m.Funcs, t.Weir.Funcs...)
	return testNames{m}
}

// global returns what is known of a global of a test file.
func (t testNames) global(name string) *known {
	for i := range t.module.Funcs {
		if f := &t.module.Funcs[i]; scripting.CamelCase(f.Name) == name {
			return &known{Fn: f, Name: name}
		}
	}
	for _, m := range t.module.Tables {
		if m.Name == name {
			return &known{Module: m, Name: name}
		}
	}
	return nil
}

// exported returns the names that a file exports, or nil if they are unknown.
func (c *chunk) exported() []string {
	var names []string
	sure := c.tree != nil
	if !sure {
		return nil
	}
	visit(c.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpression)
		if !ok {
			return true
		}
		switch calleeName(call.Callee) {
		case "__reExport":
			sure = false
		case "__export":
			if o, ok := call.ArgumentList[len(call.ArgumentList)-1].(*ast.ObjectLiteral); ok {
				for _, p := range o.Value {
					if k, ok := p.(*ast.PropertyKeyed); ok {
						if s, ok := k.Key.(*ast.StringLiteral); ok {
							names = append(names, s.Value.String())
						}
					}
				}
			}
		}
		return true
	})
	if !sure {
		return nil
	}
	return names
}

// collectConstants collects the constant expressions among the arguments of a
// batch operation.
func (l *linter) collectConstants(f *known, args []ast.Expression) {
	var over batch.Signals
	switch t := l.rules.Table; f.Of {
	case t.Batch:
		over = batch.SignalMetrics
	case t.Logs:
		over = batch.SignalLogs
	default:
		return
	}
	keep := func(i int, kind expr.Kind) {
		if i >= len(args) {
			return
		}
		if s, ok := constant(args[i]); ok {
			e := scripting.Expr{File: l.c.file, Src: s, Kind: kind, Over: over}
			if e.Line, e.Col, ok = l.written(args[i].Idx0()); ok && !slices.Contains(l.exprs, e) {
				l.exprs = append(l.exprs, e)
			}
		}
	}
	for i := range f.Fn.Params {
		if kind := f.Fn.Params[i].Expression; kind != nil {
			keep(i, *kind)
		}
	}
}

// constant returns the text of a constant expression.
func constant(e ast.Expression) (string, bool) {
	switch e := e.(type) {
	case *ast.StringLiteral:
		return e.Value.String(), true
	case *ast.TemplateLiteral:
		if len(e.Expressions) == 0 && e.Tag == nil && len(e.Elements) == 1 {
			return e.Elements[0].Parsed.String(), true
		}
	}
	return "", false
}

// checkArguments checks the arguments of a known function.
func (l *linter) checkArguments(e *ast.CallExpression, f *known, fn *scripting.Function, sc *lintScope) {
	params, args := fn.Params, e.ArgumentList
	at := nameOf(e.Callee)
	open := slices.ContainsFunc(args, func(a ast.Expression) bool { _, ok := a.(*ast.SpreadElement); return ok })
	rest := len(params) > 0 && params[len(params)-1].Rest
	if open { // the positions of later arguments are unknown
		for _, a := range args {
			l.expr(a, sc)
		}
		return
	}
	if len(args) > len(params) && !rest {
		// Functions that the language itself binds ignore further arguments.
		l.addFinding(scripting.LintWrongArgument, fn.Fn == nil, at, &scripting.ArgError{Func: f.Name, Msg: fmt.Sprintf("it takes %d arguments, not %d", len(params), len(args))}, "")
	}
	if f.Name == "ctx.route" && len(args) > 0 && l.rules.Def != nil {
		if s, ok := constant(args[0]); ok {
			if _, err := l.rules.Def.Way(s); err != nil {
				l.addFinding(scripting.LintUnknownOutput, false, args[0].Idx0(), reworded(err), "")
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
	for i := len(args); i < len(params); i++ {
		if p := &params[i]; !p.Rest {
			if msg := p.Accepts(nil); msg != "" {
				l.addFinding(scripting.LintWrongArgument, false, at, &scripting.ArgError{Func: f.Name, Param: p.Name, Msg: msg}, "")
			}
		}
	}
}

// nameOf returns the position of a called name.
func nameOf(callee ast.Expression) file.Idx {
	switch e := callee.(type) {
	case *ast.DotExpression:
		return e.Identifier.Idx
	case *ast.SequenceExpression:
		return nameOf(e.Sequence[len(e.Sequence)-1])
	case *ast.OptionalChain:
		return nameOf(e.Expression)
	case *ast.Optional:
		return nameOf(e.Expression)
	}
	return callee.Idx0()
}

// argument checks one argument: whether a constant has the right type, and
// functions whose parameters are known from the declaration.
func (l *linter) argument(f *known, p *scripting.Param, a ast.Expression, sc *lintScope) {
	wrong := func(x scripting.Value) {
		if msg := p.Accepts(x); msg != "" {
			l.addFinding(scripting.LintWrongArgument, false, a.Idx0(), &scripting.ArgError{Func: f.Name, Param: p.Name, Msg: msg}, "")
		}
	}
	if s, ok := constant(a); ok {
		wrong(s)
		return
	}
	switch a := a.(type) {
	case *ast.NumberLiteral:
		text := p.Kind == scripting.KindString && f.Fn.Fn == nil // the language may convert it to a text
		switch n := a.Value.(type) {
		case int64:
			if !text {
				wrong(float64(n))
			}
		case float64:
			if !text {
				wrong(n)
			}
		}
	case *ast.BooleanLiteral:
		wrong(a.Value)
	default:
		l.visitAs(p, a, sc)
	}
}

// visitAs visits an expression whose type is declared.
func (l *linter) visitAs(p *scripting.Param, e ast.Expression, sc *lintScope) {
	switch e := e.(type) {
	case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
		l.beginsHook(p, e)
		l.function(e, sc, l.rules.Parameters(p))
	case *ast.Identifier:
		l.callback(p, l.expr(e, sc))
	case *ast.ObjectLiteral:
		l.object(api.Options(p, keysIn(e)), e, sc)
	case *ast.ArrayLiteral:
		for _, x := range e.Value {
			switch {
			case x == nil:
			case p.Of != nil:
				l.visitAs(p.Of, x, sc)
			default:
				l.expr(x, sc)
			}
		}
	default:
		l.expr(e, sc)
	}
}

// callback visits a function of the file with the parameters that its use
// declares.
func (l *linter) callback(p *scripting.Param, k *known) {
	own := keptOf(k)
	if own.fn == nil || p.Call == nil {
		return
	}
	if key := fmt.Sprintf("%d %s", own.fn.Idx0(), p.Name); !l.bound[key] {
		l.bound[key] = true
		l.function(own.fn, own.scope, l.rules.Parameters(p))
	}
}

// object visits an object whose keys are declared.
func (l *linter) object(p *scripting.Param, o *ast.ObjectLiteral, sc *lintScope) {
	of := func(name string, at file.Idx) *scripting.Param {
		if i := slices.IndexFunc(p.Fields, func(q scripting.Param) bool { return q.Name == name }); i >= 0 {
			return &p.Fields[i]
		}
		if !api.Open(p) {
			l.addFinding(scripting.LintUnknownKey, false, at, fmt.Errorf("there is no key %q here", name), config.DidYouMean(name, scripting.Names(p.Fields)))
		}
		return p.Of
	}
	for _, prop := range o.Value {
		switch prop := prop.(type) {
		case *ast.PropertyShort:
			k := l.ident(&prop.Name, sc)
			if q := of(prop.Name.Name.String(), prop.Name.Idx); q != nil {
				l.callback(q, k)
			}
		case *ast.PropertyKeyed:
			var q *scripting.Param
			if s, ok := prop.Key.(*ast.StringLiteral); ok && !prop.Computed {
				q = of(s.Value.String(), s.Idx)
			} else {
				l.expr(prop.Key, sc)
				q = p.Of
			}
			if q == nil {
				l.expr(prop.Value, sc)
				continue
			}
			l.visitAs(q, prop.Value, sc)
		default:
			l.expr(prop, sc)
		}
	}
}

// keysIn returns the keys of an object that are names.
func keysIn(o *ast.ObjectLiteral) []string {
	var keys []string
	for _, p := range o.Value {
		switch p := p.(type) {
		case *ast.PropertyShort:
			keys = append(keys, p.Name.Name.String())
		case *ast.PropertyKeyed:
			if s, ok := p.Key.(*ast.StringLiteral); ok && !p.Computed {
				keys = append(keys, s.Value.String())
			}
		}
	}
	return keys
}
