package js

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

var (
	_ scripting.Linted     = (*program)(nil)
	_ scripting.TestLinter = (*Language)(nil)
)

// Lint returns the findings of the compilation.
func (p *program) Lint() []scripting.Finding { return p.found }

// lint tracks the known values in the files, like the linter of Lua, to find
// errors and constant expressions. names are the globals.
func (p *program) lint(names globals) {
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		c := p.files[name]
		if c.smap == nil {
			continue // all of its statements are generated
		}
		var def *scripting.Definition
		if c == p.main && p.test == nil {
			def = p.def
		}
		l := &linter{c: c, code: file.NewFile(name, c.code, c.tree.File.Base()), prog: p, globals: names, seen: map[string]bool{}, bound: map[string]bool{}, first: map[ast.Node]string{}, loose: map[string]bool{}, bounded: map[string]bool{}}
		l.rules = api.Rules{Table: api.Get(), Def: def, Modules: p.stdlib, Spell: scripting.CamelCase, Series: refusedInSeries, Say: l.sayAt, Instead: l.insteadOf, Length: "length"}
		l.findUnknown()
		l.findBounded()
		l.node(c.tree, (*lintScope)(nil).inner())
		if def != nil {
			var all []scripting.File
			for _, c := range p.files {
				if c.smap != nil {
					all = append(all, c.file)
				}
			}
			l.found = append(l.found, scripting.UnusedNeeds(def, c.file, all, tokensOf)...)
		}
		p.found = append(p.found, scripting.Ignoring(c.file, ignoresOf(c.file), l.found)...)
		c.exprs = l.exprs
	}
}

// LintTest compiles a test file and checks it as Lint checks a script.
func (l *Language) LintTest(f scripting.File, env scripting.Env, t *scripting.TestAPI) ([]scripting.Finding, error) {
	vm, err := l.NewTest(f, env, t)
	if err != nil {
		return nil, err
	}
	v := vm.(*test).v
	v.prog.lint(globalsOf(v))
	var out []scripting.Finding
	for _, found := range v.prog.found { // imported scripts are checked separately
		if found.Err.File == f.Name {
			out = append(out, found)
		}
	}
	return out, nil
}

// globals are the global names of a VM, with the properties of the objects
// among them.
type globals map[string]map[string]bool

func globalsOf(v *vm) globals {
	g := v.rt.GlobalObject()
	out := globals{"arguments": nil}
	for _, name := range g.GetOwnPropertyNames() {
		out[name] = nil
		if o, ok := g.Get(name).(*goja.Object); ok && name != "globalThis" {
			out[name] = map[string]bool{}
			for ; o != nil; o = o.Prototype() {
				for _, n := range o.GetOwnPropertyNames() {
					out[name][n] = true
				}
			}
		}
	}
	return out
}

// linter checks one file, in the output of esbuild. Positions are those of the
// file.
type linter struct {
	c       *chunk
	code    *file.File // the input of goja, without the source map
	prog    *program
	rules   api.Rules
	globals globals
	loose   map[string]bool // names without checks: they are assigned to, or used in typeof
	bounded map[string]bool // names of objects that do not only grow
	depth   int             // of functions
	found   []scripting.Finding
	exprs   []scripting.Expr
	seen    map[string]bool     // findings, because a function may be visited twice
	bound   map[string]bool     // functions that were visited as callbacks
	first   map[ast.Node]string // the hooks that begin with a statement, or a call
}

type known = api.Known

// kept contains what only JavaScript knows of a value.
type kept struct {
	require  bool     // it is the function require
	imported *known   // an imported module: default is the module
	exports  []string // the exports of another file
	file     string   // the name of that file
	promise  *known   // the value of a promise
	tuple    []*known // the elements of an array
	fn       ast.Node // a function of this file
	long     string   // the kind of an object that lives as long as its VM: {}, Map or Set
	scope    *lintScope
}

func keptOf(k *known) kept {
	if k == nil {
		return kept{}
	}
	o, _ := k.Own.(kept)
	return o
}

// lintScope contains the names of a block.
type lintScope struct {
	vars map[string]*known
	up   *lintScope
}

func (s *lintScope) inner() *lintScope { return &lintScope{vars: map[string]*known{}, up: s} }

// find returns a name; at is nil if it does not exist.
func (s *lintScope) find(name string) (k *known, at *lintScope) {
	for ; s != nil; s = s.up {
		if k, ok := s.vars[name]; ok {
			return k, s
		}
	}
	return nil, nil
}

// findUnknown collects the names about which nothing can be known.
func (l *linter) findUnknown() {
	name := func(n ast.Node) {
		visit(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Identifier); ok {
				l.loose[id.Name.String()] = true
			}
			_, dot := n.(*ast.DotExpression)
			_, bracket := n.(*ast.BracketExpression)
			return !dot && !bracket
		})
	}
	visit(l.c.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignExpression:
			name(n.Left)
		case *ast.UnaryExpression:
			if n.Operator == token.INCREMENT || n.Operator == token.DECREMENT || n.Operator == token.TYPEOF {
				name(n.Operand)
			}
		case *ast.ForIntoExpression:
			name(n.Expression)
		}
		return true
	})
}

func (l *linter) sayAt(id string, warning bool, at int, _ string, err error, hint string) {
	l.addFinding(id, warning, file.Idx(at), err, hint)
}

// addFinding adds a finding in code that the author wrote.
func (l *linter) addFinding(id string, warning bool, at file.Idx, err error, hint string) {
	line, col, ok := l.written(at)
	if !ok {
		return
	}
	e := l.c.file.Error(line, hookLoad, err)
	e.ID, e.Col, e.Hint = id, col, hint
	if key := fmt.Sprintf("%d:%d %v", line, col, err); !l.seen[key] {
		l.seen[key] = true
		l.found = append(l.found, scripting.Finding{Err: e, Warning: warning})
	}
}

// written returns the position of code in the source. ok is false for code that
// esbuild generated.
func (l *linter) written(at file.Idx) (line, col int, ok bool) {
	pos := l.code.Position(int(at) - l.code.Base())
	_, _, line, col, ok = l.c.smap.Source(pos.Line, pos.Column)
	return line, col, ok && line > 0
}

// node visits any node of the tree.
func (l *linter) node(n ast.Node, sc *lintScope) {
	switch n := n.(type) {
	case *ast.Program:
		l.body(n.Body, n.DeclarationList, sc)
	case *ast.BlockStatement:
		l.body(n.List, nil, sc.inner())
	case *ast.VariableStatement:
		l.bindings(n.List, sc)
	case *ast.LexicalDeclaration:
		l.bindings(n.List, sc)
	case *ast.ForLoopInitializerVarDeclList:
		l.bindings(n.List, sc)
	case *ast.ForStatement, *ast.SwitchStatement:
		in := sc.inner()
		if s, ok := n.(*ast.SwitchStatement); ok {
			for _, c := range s.Body {
				l.hoist(c.Consequent, in)
			}
		}
		l.inside(n, in)
	case *ast.ForInStatement:
		l.expr(n.Source, sc)
		l.loop(n.Into, nil, n.Body, sc)
	case *ast.ForOfStatement:
		k := l.expr(n.Source, sc)
		l.iterable(k, n.Source)
		l.loopOverRecords(n, k, sc)
		l.loop(n.Into, elementOf(k), n.Body, sc)
	case *ast.CatchStatement:
		in := sc.inner()
		if n.Parameter != nil {
			l.bind(n.Parameter, nil, in)
		}
		l.body(n.Body.List, nil, in)
	case *ast.LabelledStatement:
		l.node(n.Statement, sc)
	case *ast.BranchStatement, *ast.MetaProperty:
	case *ast.FunctionDeclaration:
		l.function(n.Function, sc, nil)
	case *ast.ClassDeclaration:
		l.class(n.Class, sc)
	case *ast.FieldDefinition:
		if n.Computed {
			l.expr(n.Key, sc)
		}
		if n.Initializer != nil {
			l.expr(n.Initializer, sc)
		}
	case *ast.MethodDefinition:
		if n.Computed {
			l.expr(n.Key, sc)
		}
		l.function(n.Body, sc, nil)
	case *ast.ClassStaticBlock:
		in := sc.inner()
		l.body(n.Block.List, n.DeclarationList, in)
	case ast.Expression:
		l.expr(n, sc)
	default:
		l.inside(n, sc)
	}
}

// inside visits the parts of a node.
func (l *linter) inside(n ast.Node, sc *lintScope) {
	visit(n, func(part ast.Node) bool {
		if part == n {
			return true
		}
		l.node(part, sc)
		return false
	})
}

// loop visits the body of a for loop. k describes the elements.
func (l *linter) loop(into ast.ForInto, k *known, body ast.Statement, sc *lintScope) {
	in := sc.inner()
	switch into := into.(type) {
	case *ast.ForDeclaration:
		l.bind(into.Target, k, in)
	case *ast.ForIntoVar:
		l.bind(into.Binding.Target, k, sc)
	case *ast.ForIntoExpression:
		l.write(into.Expression, sc)
		l.expr(into.Expression, sc)
	}
	l.node(body, in)
}

// elementOf describes the elements of an iterable.
func elementOf(k *known) *known {
	switch {
	case k == nil:
	case len(k.Yields) == 1:
		return k.Yields[0]
	case len(k.Yields) > 1:
		return &known{Own: kept{tuple: k.Yields}}
	case k.Object != nil && k.Object.Element != nil:
		return &known{Object: k.Object.Element, Name: k.Object.Element.Name}
	}
	return nil
}

// body visits statements; vars are declared anywhere in them.
func (l *linter) body(ss []ast.Statement, vars []*ast.VariableDeclaration, sc *lintScope) {
	for _, v := range vars {
		for _, b := range v.List {
			l.bind(b.Target, nil, sc)
		}
	}
	l.hoist(ss, sc)
	for _, s := range ss {
		l.node(s, sc)
	}
}

// hoist declares the names that are visible from the beginning of a block.
func (l *linter) hoist(ss []ast.Statement, sc *lintScope) {
	for _, s := range ss {
		switch s := s.(type) {
		case *ast.LexicalDeclaration:
			for _, b := range s.List {
				l.bind(b.Target, nil, sc)
			}
		case *ast.FunctionDeclaration:
			l.declare(s.Function.Name, &known{Own: kept{fn: s.Function, scope: sc}}, sc)
		case *ast.ClassDeclaration:
			l.declare(s.Class.Name, nil, sc)
		}
	}
}

func (l *linter) declare(id *ast.Identifier, k *known, sc *lintScope) {
	if id == nil {
		return
	}
	name := id.Name.String()
	if l.loose[name] {
		k = nil
	}
	sc.vars[name] = k
}

func (l *linter) bindings(bs []*ast.Binding, sc *lintScope) {
	for _, b := range bs {
		var k *known
		if b.Initializer != nil {
			k = l.expr(b.Initializer, sc)
			if long := l.keptBetweenCalls(b); long != nil {
				k = long
			}
		}
		l.bind(b.Target, k, sc)
	}
}

// bind declares the names of a pattern for a value.
func (l *linter) bind(target ast.Expression, k *known, sc *lintScope) {
	switch t := target.(type) {
	case *ast.Identifier:
		l.declare(t, k, sc)
	case *ast.Binding:
		if t.Initializer != nil {
			l.expr(t.Initializer, sc)
		}
		l.bind(t.Target, k, sc)
	case *ast.AssignExpression: // with a default value
		l.expr(t.Right, sc)
		l.bind(t.Left, k, sc)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				if p.Initializer != nil {
					l.expr(p.Initializer, sc)
				}
				l.declare(&p.Name, l.member(k, p.Name.Name.String(), p.Name.Idx), sc)
			case *ast.PropertyKeyed:
				var in *known
				if s, ok := p.Key.(*ast.StringLiteral); ok && !p.Computed {
					in = l.member(k, s.Value.String(), s.Idx)
				} else {
					l.expr(p.Key, sc)
				}
				l.bind(p.Value, in, sc)
			}
		}
		if t.Rest != nil {
			l.bind(t.Rest, nil, sc)
		}
	case *ast.ArrayPattern:
		l.destructured(k, t)
		for i, e := range t.Elements {
			var in *known
			if tuple := keptOf(k).tuple; i < len(tuple) {
				in = tuple[i]
			}
			if e != nil {
				l.bind(e, in, sc)
			}
		}
		if t.Rest != nil {
			l.bind(t.Rest, nil, sc)
		}
	}
}

// function visits a function. params describe its parameters.
func (l *linter) function(n ast.Node, sc *lintScope, params []*known) {
	in := sc.inner()
	var list *ast.ParameterList
	switch f := n.(type) {
	case *ast.FunctionLiteral:
		list = f.ParameterList
		l.declare(f.Name, nil, in)
	case *ast.ArrowFunctionLiteral:
		list = f.ParameterList
	}
	for i, b := range list.List {
		var k *known
		if i < len(params) {
			k = params[i]
		}
		l.bind(b, k, in)
	}
	if list.Rest != nil {
		l.bind(list.Rest, nil, in)
	}
	l.depth++
	defer func() { l.depth-- }()
	switch f := n.(type) {
	case *ast.FunctionLiteral:
		l.body(f.Body.List, f.DeclarationList, in)
	case *ast.ArrowFunctionLiteral:
		switch b := f.Body.(type) {
		case *ast.BlockStatement:
			l.body(b.List, f.DeclarationList, in)
		case *ast.ExpressionBody:
			l.expr(b.Expression, in)
		}
	}
}

func (l *linter) class(c *ast.ClassLiteral, sc *lintScope) {
	in := sc.inner()
	l.declare(c.Name, nil, in)
	if c.SuperClass != nil {
		l.expr(c.SuperClass, sc)
	}
	for _, e := range c.Body {
		l.node(e, in)
	}
}

// unknownName adds a finding for an undefined name.
func (l *linter) unknownName(id *ast.Identifier) {
	name := id.Name.String()
	hint := instead[name]
	switch {
	case hint != "":
	case l.prog.stdlib[name] != nil:
		hint = "write import " + name + " from \"" + libPrefix + name + "\" above"
	case l.prog.test != nil && testModuleOf(l.prog.test.api).global(name) != nil:
		hint = "write import { " + name + " } from \"" + testModule + "\" above"
	default:
		hint = config.DidYouMean(name, slices.Sorted(maps.Keys(l.globals)))
	}
	l.addFinding(scripting.LintUnknownGlobal, false, id.Idx, fmt.Errorf("%s is not defined", name), hint)
}
