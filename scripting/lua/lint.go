package lua

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

var _ scripting.Linted = (*program)(nil)

// Lint follows values through the source of all files: modules, parameters of
// hooks, and the results of their functions, as the table of the API describes
// them. It reports nothing about values that it does not know.
func (p *program) Lint() []scripting.Finding {
	var out []scripting.Finding
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		c := p.files[name]
		var def *scripting.Definition
		if c == p.main {
			def = p.def
		}
		l := newLinter(p, c.file, def)
		l.run(globalsOf(p, nil))
		out = append(out, l.found...)
	}
	return out
}

// globalsOf are the globals of a script, or of a test file: what is known of
// each, nil for nothing.
func globalsOf(p *program, t *scripting.TestAPI) map[string]*known {
	globals := map[string]*known{}
	for _, n := range fromBase {
		globals[n] = nil
	}
	globals["_VERSION"] = nil
	maps.Copy(globals, p.libraries())
	for n := range (*vm)(nil).baseLib() {
		globals[n] = nil
	}
	if t == nil {
		return globals
	}
	for _, n := range ofTests {
		globals[n] = nil
	}
	for i := range t.Globals {
		globals[t.Globals[i].Name] = &known{Fn: &t.Globals[i], Name: t.Globals[i].Name}
	}
	for _, m := range t.Tables {
		globals[m.Name] = &known{Module: m, Name: m.Name}
	}
	weir := *api.Get().Weir
	test := *t.Weir
	test.Name = "test"
	weir.Tables = append(slices.Clone(weir.Tables), &test)
	globals["weir"] = &known{Module: &weir, Name: "weir"}
	return globals
}

// linter looks at one file.
type linter struct {
	file    scripting.File
	lines   []string
	prog    *program
	rules   api.Rules
	globals map[string]*known
	depth   int // of functions
	found   []scripting.Finding
	test    bool             // it is a test file
	missing []nilUse         // globals
	reads   map[string]int   // of what Lua's libraries do not have, calls among them
	calls   map[string][]int // and the lines of those
	seen    map[string]bool  // findings, as a function may be visited twice
	bound   map[string]bool  // functions of hooks that were visited, by line and parameter
	first   map[any]string   // the hooks that begin with a statement, or a call
}

// newLinter looks at a file; def is that of the component, nil in another file.
func newLinter(p *program, f scripting.File, def *scripting.Definition) *linter {
	l := &linter{file: f, prog: p, reads: map[string]int{}, calls: map[string][]int{}, seen: map[string]bool{}, bound: map[string]bool{}, first: map[any]string{}}
	l.rules = api.Rules{
		Table: api.Get(), Def: def, Modules: p.stdlib, Say: l.addFinding,
		Spell: func(name string) string { return name }, Series: refusedInSeries,
	}
	return l
}

// known is what is known of a value; a nil one is not known.
type known = api.Known

// kept is what only Lua knows of a value.
type kept struct {
	require bool              // it is the function require
	local   *ast.FunctionExpr // a function of this file
	scope   *lintScope        // that it was written in
	long    bool              // a table that lives as long as its VM
	library map[string]bool   // the members of one of Lua's own libraries
	absent  string            // a member that such a library does not have
	never   string            // why it is always nil
	instead string            // what to write so that it is not
}

// ownOf is what Lua knows of a value in addition to the rules.
func ownOf(k *known) kept {
	if k == nil {
		return kept{}
	}
	o, _ := k.Own.(kept)
	return o
}

// lintScope has the locals of a block.
type lintScope struct {
	vars map[string]*known
	up   *lintScope
}

func (s *lintScope) inner() *lintScope { return &lintScope{vars: map[string]*known{}, up: s} }

// find finds a local; ok is false when there is none.
func (s *lintScope) find(name string) (k *known, at *lintScope, ok bool) {
	for ; s != nil; s = s.up {
		if k, ok := s.vars[name]; ok {
			return k, s, true
		}
	}
	return nil, nil, false
}

func (l *linter) run(globals map[string]*known) {
	// The tree that was compiled has been rewritten.
	stmts, err := parse.Parse(strings.NewReader(l.file.Text), l.file.Name)
	if err != nil {
		return // it was compiled before: this does not happen
	}
	l.globals = globals
	l.lines = strings.Split(l.file.Text, "\n")
	l.block(stmts, (*lintScope)(nil).inner())
	l.unknownGlobals()
	l.absentCalls()
	if l.rules.Def != nil {
		var all []scripting.File
		for _, c := range l.prog.files {
			all = append(all, c.file)
		}
		l.found = append(l.found, scripting.UnusedNeeds(l.rules.Def, l.file, all, tokensOf)...)
	}
	l.found = scripting.Ignoring(l.file, ignoresOf(l.file), l.found)
}

// addFinding notes a finding at a word of a line, or at the line.
func (l *linter) addFinding(id string, warning bool, line int, word string, err error, hint string) {
	e := l.file.Error(line, hookLoad, err)
	e.Hint = hint
	for i := line; i > 0 && i <= len(l.lines) && i < line+5 && word != ""; i++ { // a chain of calls has the line of its first
		re := regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(word) + `($|[^A-Za-z0-9_])`)
		if at := re.FindStringSubmatchIndex(l.lines[i-1]); at != nil {
			e = l.file.Error(i, hookLoad, err)
			e.Col, e.Hint = at[3]+1, hint
			break
		}
	}
	e.ID = id
	key := fmt.Sprintf("%d:%d %v", e.Line, e.Col, err)
	if !l.seen[key] {
		l.seen[key] = true
		l.found = append(l.found, scripting.Finding{Err: e, Warning: warning})
	}
}

func (l *linter) block(ss []ast.Stmt, sc *lintScope) {
	for _, s := range ss {
		l.stmt(s, sc)
	}
}

func (l *linter) stmt(s ast.Stmt, sc *lintScope) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		l.assign(s, sc)
	case *ast.LocalAssignStmt:
		l.local(s, sc)
	case *ast.FuncCallStmt:
		l.expr(s.Expr, sc)
	case *ast.DoBlockStmt:
		l.block(s.Stmts, sc.inner())
	case *ast.WhileStmt:
		l.expr(s.Condition, sc)
		l.block(s.Stmts, sc.inner())
	case *ast.RepeatStmt:
		in := sc.inner()
		l.block(s.Stmts, in)
		l.expr(s.Condition, in)
	case *ast.IfStmt:
		l.expr(s.Condition, sc)
		l.block(s.Then, sc.inner())
		l.block(s.Else, sc.inner())
	case *ast.NumberForStmt:
		l.exprs([]ast.Expr{s.Init, s.Limit, s.Step}, sc)
		in := sc.inner()
		in.vars[s.Name] = nil
		l.block(s.Stmts, in)
	case *ast.GenericForStmt:
		in := sc.inner()
		l.generic(s, sc, in)
		l.block(s.Stmts, in)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			l.expr(s.Name.Func, sc)
		} else {
			l.expr(s.Name.Receiver, sc)
		}
		var params []*known
		if s.Name.Method != "" {
			params = []*known{nil}
		}
		l.function(s.Func, sc, params, s.Name.Method != "")
	case *ast.ReturnStmt:
		l.exprs(s.Exprs, sc)
	}
}

func (l *linter) local(s *ast.LocalAssignStmt, sc *lintScope) {
	if len(s.Exprs) == 1 && len(s.Names) == 1 { // local function sees itself
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			sc.vars[s.Names[0]] = &known{Own: kept{local: f, scope: sc}}
		}
	}
	values := l.exprs(s.Exprs, sc)
	for i, n := range s.Names {
		var k *known
		if i < len(values) {
			k = values[i]
			if _, isTable := s.Exprs[i].(*ast.TableExpr); isTable && l.depth == 0 {
				k = &known{Own: kept{long: true}, Name: n}
			}
		}
		sc.vars[n] = k
	}
}

func (l *linter) assign(s *ast.AssignStmt, sc *lintScope) {
	values := l.exprs(s.Rhs, sc)
	for i, lhs := range s.Lhs {
		switch lhs := lhs.(type) {
		case *ast.IdentExpr:
			if _, at, ok := sc.find(lhs.Value); ok {
				at.vars[lhs.Value] = nil // it may be anything from here on
			}
		case *ast.AttrGetExpr:
			owner := l.used(lhs.Object, sc)
			l.expr(lhs.Key, sc)
			key, isName := lhs.Key.(*ast.StringExpr)
			if owner == nil {
				continue
			}
			if isName {
				l.rules.Set(owner, key.Value, key.Line())
			} else if ownOf(owner).long && l.depth > 0 && !grows(lhs) {
				l.leak(lhs, owner, i < len(values) && isNil(s.Rhs[i]))
			}
		}
	}
}

// leak warns of a table that is used as a cache or a state.
func (l *linter) leak(at *ast.AttrGetExpr, owner *known, removes bool) {
	err := fmt.Errorf("%s lives as long as its VM: each VM has its own, and a reload empties it", owner.Name)
	if removes {
		err = fmt.Errorf("%s keeps the key although its value is nil: what is removed from a table takes up its place", owner.Name)
	}
	l.addFinding(scripting.LintUnboundedCache, true, at.Line(), owner.Name, err, "declare it as state = { "+owner.Name+" = weir.state.lru { max = 10000 } }, which is shared, bounded and kept over a reload")
}

// grows reports whether the key is a number by its look, such as #t + 1: an
// array that is filled again each time.
func grows(a *ast.AttrGetExpr) bool {
	switch a.Key.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryLenOpExpr:
		return true
	}
	return false
}

func isNil(e ast.Expr) bool { _, ok := e.(*ast.NilExpr); return ok }

// exprs visits expressions, of which some may be nil.
func (l *linter) exprs(es []ast.Expr, sc *lintScope) []*known {
	out := make([]*known, len(es))
	for i, e := range es {
		if e != nil {
			out[i] = l.expr(e, sc)
		}
	}
	return out
}

// function visits a function of which parameters are known.
func (l *linter) function(f *ast.FunctionExpr, sc *lintScope, params []*known, self bool) {
	in := sc.inner()
	names := f.ParList.Names
	if self {
		names = append([]string{"self"}, names...)
	}
	for i, n := range names {
		in.vars[n] = nil
		if i < len(params) {
			in.vars[n] = params[i]
		}
	}
	l.depth++
	l.block(f.Stmts, in)
	l.depth--
}

// unknownGlobal reports a global that is not there.
func (l *linter) unknownGlobal(e *ast.IdentExpr, warning bool) {
	hint := removed[e.Value]
	if hint == "" {
		hint = config.DidYouMean(e.Value, slices.Sorted(maps.Keys(l.globals)))
	}
	if hint == "" && (l.prog.stdlib[e.Value] != nil || e.Value == "weir") {
		hint = fmt.Sprintf("write local %s = require %q above", e.Value, e.Value)
	}
	l.addFinding(scripting.LintUnknownGlobal, warning, e.Line(), e.Value, fmt.Errorf("there is no global %q: it is nil", e.Value), hint)
}

// LintTest compiles a test file and looks at it as Lint does at a script.
func (l *Language) LintTest(f scripting.File, env scripting.Env, t *scripting.TestAPI) ([]scripting.Finding, error) {
	vm, err := l.NewTest(f, env, t)
	if err != nil {
		return nil, err
	}
	p := vm.(*test).v.prog
	lint := newLinter(p, p.main.file, nil)
	lint.test = true
	lint.run(globalsOf(p, t))
	return lint.found, nil
}
