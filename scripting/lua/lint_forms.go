package lua

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// elsewhere says where functions are that other Luas, or other languages, have in
// their libraries.
var elsewhere = map[string]string{
	"table.unpack":    "write unpack(t)",
	"table.pack":      "write { n = select(\"#\", ...), ... }",
	"table.move":      "write a loop",
	"table.contains":  "write a loop, or keep the values as keys",
	"table.foreach":   "write for k, v in pairs(t) do",
	"string.split":    `write local text = require "text" above, and text.split(s, ",")`,
	"string.trim":     `write local text = require "text" above, and text.trim(s)`,
	"string.contains": "write s:find(part, 1, true)",
	"string.replace":  "write s:gsub(pattern, replacement)",
	"string.pack":     "weir runs Lua 5.1, which has no string.pack",
	"string.unpack":   "weir runs Lua 5.1, which has no string.unpack",
	"math.round":      `write math.floor(x + 0.5), or local round = require("math").round`,
	"math.tointeger":  "write math.floor(x)",
	"math.type":       "write type(x): all numbers are floating-point",
	"math.maxinteger": "write 2^53",
}

// libraries returns what Lua's own libraries have in a script: math.abs and so on.
func (p *program) libraries() map[string]*known {
	libs := map[string]*known{}
	v := p.newVM(scripting.Host{})
	defer v.L.Close()
	for _, name := range []string{"math", "table", "string", "coroutine"} {
		members := map[string]bool{}
		for key := range entries(v.readOnly.real(v.library.env.RawGetString(name).(*lua.LTable))) {
			members[key.String()] = true
		}
		libs[name] = &known{Name: name, Own: kept{library: members}}
	}
	return libs
}

// absentCalls reports calls of what the libraries do not have. A script that also
// asks whether it is there may mean what it says.
func (l *linter) absentCalls() {
	for name, lines := range l.calls {
		if l.reads[name] > len(lines) {
			continue
		}
		lib, member, _ := strings.Cut(name, ".")
		hint := removed[name]
		if hint == "" {
			hint = elsewhere[name]
		}
		if hint == "" {
			hint = config.DidYouMean(member, slices.Sorted(maps.Keys(ownOf(l.globals[lib]).library)))
		}
		for _, line := range lines {
			l.addFinding(scripting.LintUnknownMember, false, line, member, fmt.Errorf("cannot call %s: there is no such function", name), hint)
		}
	}
}

// overObject looks at pairs, ipairs, next and unpack of what is no table.
func (l *linter) overObject(e *ast.FuncCallExpr, sc *lintScope) {
	id, ok := e.Func.(*ast.IdentExpr)
	if !ok || len(e.Args) == 0 || !slices.Contains([]string{"pairs", "ipairs", "next", "unpack"}, id.Value) {
		return
	}
	if _, _, local := sc.find(id.Value); local {
		return
	}
	k := l.expr(e.Args[0], sc)
	name := written(e.Args[0])
	if hint := l.iteration(k, name); hint != "" {
		l.addFinding(scripting.LintWrongLoop, false, e.Line(), id.Value, fmt.Errorf("cannot use %s(%s): %s", id.Value, name, notTable(k)), hint)
	}
}

// notTable says what a value is that is no table.
func notTable(k *known) string {
	switch {
	case k.Yields != nil:
		return "an iterator stands alone after in"
	case k.Fn != nil:
		return "it is a function, which must be called"
	}
	return "a " + k.Object.Name + " is not a table"
}

// iteration returns how a script goes over a value; "" when it is a table or not
// known.
func (l *linter) iteration(k *known, name string) string {
	if k == nil {
		return ""
	}
	switch {
	case k.Yields != nil:
		return loopOver(len(k.Yields) > 1 || k.Rest, name)
	case k.Fn != nil && k.Fn.Result.Kind == scripting.KindSequence:
		return loopOver(len(k.Fn.Result.Yields) > 1, colon(name)+"("+strings.Join(scripting.Names(k.Fn.Params), ", ")+")")
	case k.Object == nil || k.Fields != nil:
	case k.Object.Element != nil:
		if _, ok := k.Object.Method("records"); ok {
			return loopOver(false, name+":records()")
		}
		return fmt.Sprintf("write for i = 1, #%s do … %s[i] … end", name, name)
	}
	return ""
}

func loopOver(several bool, iterator string) string {
	if several {
		return "write for x, … in " + iterator + " do … end"
	}
	return "write for r in " + iterator + " do … end"
}

// written is a short expression as it is written; "…" for a long one.
func written(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.AttrGetExpr:
		switch key := e.Key.(type) {
		case *ast.StringExpr:
			return written(e.Object) + "." + key.Value
		case *ast.NumberExpr:
			return written(e.Object) + "[" + key.Value + "]"
		}
	case *ast.FuncCallExpr:
		args := make([]string, len(e.Args))
		for i, a := range e.Args {
			args[i] = written(a)
		}
		list := "(" + strings.Join(args, ", ") + ")"
		if e.Receiver != nil {
			return written(e.Receiver) + ":" + e.Method + list
		}
		return written(e.Func) + list
	case *ast.StringExpr:
		return fmt.Sprintf("%q", e.Value)
	case *ast.NumberExpr:
		return e.Value
	}
	return "…"
}

// generic looks at what a for goes over, and declares its names in a scope.
func (l *linter) generic(s *ast.GenericForStmt, sc, in *lintScope) {
	ks := l.exprs(s.Exprs, sc)
	var k *known
	if len(s.Exprs) == 1 {
		k = ks[0]
	}
	for _, n := range s.Names {
		in.vars[n] = nil
	}
	if k == nil {
		return
	}
	l.loopOverRecords(s, sc)
	name := written(s.Exprs[0])
	if k.Yields == nil {
		if hint := l.iteration(k, name); hint != "" {
			l.addFinding(scripting.LintWrongLoop, false, s.Exprs[0].Line(), last(name), fmt.Errorf("cannot go over %s: %s", name, notIterator(k)), hint)
		}
		return
	}
	for i, n := range s.Names {
		switch {
		case i < len(k.Yields):
			in.vars[n] = k.Yields[i]
		case !k.Rest:
			hint := fmt.Sprintf("write for %s in %s do … end", strings.Join(s.Names[len(s.Names)-len(k.Yields):], ", "), name)
			in.vars[n] = &known{Name: n, Own: kept{never: fmt.Sprintf("%s is nil: %s gives one value at a time, the record", n, name), instead: hint}}
		}
	}
}

func notIterator(k *known) string {
	if k.Fn != nil {
		return "it is a function, which must be called"
	}
	return "a " + k.Object.Name + " is not an iterator"
}

// last is the last name in an expression.
func last(name string) string {
	return name[strings.LastIndexAny(name, ".:")+1:]
}

// never looks at a use of a name that is always nil.
func (l *linter) never(k *known, line int) {
	if own := ownOf(k); own.never != "" {
		l.addFinding(scripting.LintWrongLoop, false, line, k.Name, fmt.Errorf("%s", own.never), own.instead)
	}
}

// nilUse is a use of a global that is not there.
type nilUse struct {
	e     *ast.IdentExpr
	fails bool // it is called, or something in it is read
}

// unknownGlobals reports the globals that are not there. One that is only called
// or indexed fails wherever it is; a script that asks whether there is one may
// mean what it says.
func (l *linter) unknownGlobals() {
	asked := map[string]bool{}
	for _, use := range l.missing {
		if !use.fails {
			asked[use.e.Value] = true
		}
	}
	for _, use := range l.missing {
		l.unknownGlobal(use.e, asked[use.e.Value])
	}
}

// advice returns what the linter says about a line, for an error in it that says
// less; "" for nothing.
func (p *program) advice(file string, line int, err error, raw bool) string {
	p.advise.Do(func() { p.advices = p.Lint() })
	for _, f := range p.advices {
		if !f.Warning && f.Err.File == file && f.Err.Line == line {
			return f.Advice(err, raw)
		}
	}
	return ""
}
