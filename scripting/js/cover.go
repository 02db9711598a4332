package js

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/unistring"

	"github.com/weir-run/weir/scripting"
)

// coverGlobal is the name of the function that counts statements: no source
// can write it.
const coverGlobal = "\x00cover"

// coverCounters is how many counters a file may have; a call passes the number
// of its file times this, plus its counter.
const coverCounters = 1 << 20

// counters puts a call before each statement of a file, which tells what ran,
// and finds branches. goja has no hook for it.
type counters struct {
	base       int // of the file's counters
	n          int
	line       func(file.Idx) int  // in what its author wrote; 0: nobody wrote it
	helper     func(file.Idx) bool // a statement of esbuild's stands there
	statements []scripting.Counted
	branches   []scripting.Branch
}

// cover changes the tree of a file so that what runs of it is counted.
func (p *program) cover(c *chunk) {
	probe := p.probe
	if probe == nil || !probe.Statements && (probe.Coverage == nil || c.file.Path == "") {
		return
	}
	if c.smap == nil {
		return // nobody wrote a statement of it
	}
	base := c.tree.File.Base()
	code := file.NewFile(c.file.Name, c.code, base)
	k := &counters{base: len(p.covered) * coverCounters, line: func(idx file.Idx) int {
		at := code.Position(int(idx) - base)
		_, _, line, _, ok := c.smap.Source(at.Line, at.Column)
		if !ok {
			return 0
		}
		return line
	}, helper: func(idx file.Idx) bool {
		return slices.ContainsFunc(exportHelpers, func(begin string) bool { return strings.HasPrefix(c.code[int(idx)-base:], begin) })
	}}
	k.inside(reflect.ValueOf(c.tree))
	var covered *scripting.Covered
	if probe.Coverage != nil {
		covered = probe.Coverage.Of(c.file, k.n, k.statements, k.branches)
	}
	p.covered = append(p.covered, covered)
}

// exportHelpers begin the statements with which esbuild exports what a file does,
// all of which it places where the file begins.
var exportHelpers = []string{"var x_exports =", "__export(x_exports,", "module.exports = __toCommonJS(x_exports)"}

// openCover makes coverGlobal.
func (v *vm) openCover() {
	if len(v.prog.covered) == 0 {
		return
	}
	hit := v.rt.ToValue(func(call goja.FunctionCall) goja.Value {
		n := int(call.Argument(0).ToInteger())
		v.statements++
		if c := v.prog.covered[n/coverCounters]; c != nil {
			c.Hit(n % coverCounters)
		}
		return goja.Undefined()
	})
	v.must(v.rt.GlobalObject().DefineDataProperty(coverGlobal, hit, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
}

// ran tells the probe what ran since it was told last.
func (v *vm) ran() {
	v.prog.probe.Ran(v.statements)
	v.statements = 0
}

var (
	statementType  = reflect.TypeFor[ast.Statement]()
	statementsType = reflect.TypeFor[[]ast.Statement]()
	concise        = reflect.TypeFor[ast.ConciseBody]()
)

// inside visits what a part of the tree is made of, by the types of its fields.
func (c *counters) inside(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		c.inside(v.Elem())
	case reflect.Slice:
		if v.Type() == statementsType {
			v.Set(reflect.ValueOf(c.list(v.Interface().([]ast.Statement))))
			return
		}
		for i := range v.Len() {
			c.inside(v.Index(i))
		}
	case reflect.Struct:
		c.fields(v)
	}
}

func (c *counters) fields(v reflect.Value) {
	_, label := v.Addr().Interface().(*ast.LabelledStatement)
	for i := range v.NumField() {
		f := v.Field(i)
		switch name := v.Type().Field(i).Name; {
		case name == "DeclarationList" || name == "File": // the same parts again
		case f.Type() == statementType && !label && !f.IsNil(): // of a loop
			f.Set(reflect.ValueOf(c.block(f.Interface().(ast.Statement))))
		case f.Type() == concise:
			if e, ok := f.Interface().(*ast.ExpressionBody); ok {
				at := e.Expression.Idx0()
				f.Set(reflect.ValueOf(c.block(&ast.ReturnStatement{Return: at, Argument: e.Expression})))
				continue
			}
			c.inside(f)
		default:
			c.inside(f)
		}
	}
}

// list returns the statements with calls before them.
func (c *counters) list(ss []ast.Statement) []ast.Statement {
	out := make([]ast.Statement, 0, 2*len(ss))
	for i, s := range ss {
		at := s.Idx0()
		if s, ok := s.(*ast.IfStatement); ok {
			at = s.Test.Idx0() // goja does not say where the if is
		}
		if c.helper(at) {
			out = append(out, s)
			continue
		}
		if line := c.line(at); line > 0 && countable(s, i == len(out)) {
			call, n := c.counter(at)
			out = append(out, call)
			c.statements = append(c.statements, scripting.Counted{Line: line, Counter: n})
			if s, ok := s.(*ast.IfStatement); ok {
				c.branch(s, n, line)
				out = append(out, s)
				continue
			}
		}
		c.inside(reflect.ValueOf(s))
		out = append(out, s)
	}
	return out
}

// countable reports whether a statement does something. A directive, "use
// strict", must stay the first.
func countable(s ast.Statement, first bool) bool {
	switch s := s.(type) {
	case *ast.BlockStatement, *ast.EmptyStatement, *ast.LabelledStatement:
		return false
	case *ast.ExpressionStatement:
		_, text := s.Expression.(*ast.StringLiteral)
		return !(text && first)
	}
	return true
}

// counter returns a call that counts, and the number of the counter.
func (c *counters) counter(at file.Idx) (ast.Statement, int) {
	n := c.n
	c.n++
	return &ast.ExpressionStatement{Expression: &ast.CallExpression{
		Callee:          &ast.Identifier{Name: unistring.NewFromString(coverGlobal), Idx: at},
		LeftParenthesis: at, RightParenthesis: at,
		ArgumentList: []ast.Expression{&ast.NumberLiteral{Idx: at, Value: int64(c.base + n)}},
	}}, n
}

// block is a statement as a block, with its calls.
func (c *counters) block(s ast.Statement) *ast.BlockStatement {
	b, ok := s.(*ast.BlockStatement)
	if !ok {
		b = &ast.BlockStatement{LeftBrace: s.Idx0(), List: []ast.Statement{s}, RightBrace: s.Idx0()}
	}
	b.List = c.list(b.List)
	return b
}

// branch gives the arms of an if their counters. One behind else belongs to it.
func (c *counters) branch(s *ast.IfStatement, counter, line int) {
	b := scripting.Branch{Line: line, If: counter}
	for {
		c.inside(reflect.ValueOf(&s.Test))
		call, n := c.counter(s.Test.Idx0())
		b.Arms = append(b.Arms, n)
		then := c.block(s.Consequent)
		then.List = append([]ast.Statement{call}, then.List...)
		s.Consequent = then
		next, ok := s.Alternate.(*ast.IfStatement)
		if !ok {
			break
		}
		s = next
	}
	if s.Alternate != nil {
		s.Alternate = c.block(s.Alternate)
	}
	c.branches = append(c.branches, b)
}
