// Package lua runs components written in Lua 5.1, on gopher-lua.
//
// A file is compiled once and its FunctionProto shared by all VMs. Before
// compiling, its syntax tree is checked (nesting, writes to globals), `..` is
// rewritten to a call that counts bytes, and loops to what gopher-lua compiles
// right. A VM has a list of safe globals,
// read-only, and its context is an instruction hook (budget.go) that stops
// what runs too long.
//
// It is the only importer of gopher-lua. It is not for anything that another
// language would need as well: that is package scripting.
package lua

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/weir-run/weir/scripting"
)

// version changes when scripts behave otherwise: a save is not needed then to
// rebuild what runs.
const version = "lua5.1-2"

// maxArrayIndex bounds the array part of tables, which gopher-lua fills up
// with nil: t[67108000] = 1 would take gigabytes in one instruction. Keys above
// it are hashed and not counted by #, so it must not be too small either.
const maxArrayIndex = 1 << 17

// Language is Lua. Make it with New.
type Language struct{}

// New returns the language. It sets gopher-lua's limit of a table's array
// part, a variable of that package.
func New() *Language {
	limitArrays()
	return &Language{}
}

var limitArrays = sync.OnceFunc(func() { lua.MaxArrayIndex = maxArrayIndex })

var _ scripting.Language = (*Language)(nil)

// Name returns "lua".
func (*Language) Name() string { return "lua" }

// Version returns the version of what this package makes of Lua.
func (*Language) Version() string { return version }

// Extensions returns ".lua".
func (*Language) Extensions() []string { return []string{".lua"} }

// Comment returns the lines of the `--` comment that text begins with.
func (*Language) Comment(text string) []string {
	var out []string
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		c, ok := strings.CutPrefix(strings.TrimSpace(line), "--")
		if !ok || strings.HasPrefix(c, "[[") {
			break
		}
		out = append(out, strings.TrimPrefix(c, " "))
	}
	return out
}

// program is a compiled component: its main chunk and its modules.
type program struct {
	files   map[string]*chunk // by name as shown
	main    *chunk
	modules map[string]*chunk          // by what require calls them
	data    map[string]scripting.Value // of data files, by what require calls them
	stdlib  map[string]*scripting.Module
	def     *scripting.Definition
	probe   *scripting.Probe
	covered []*scripting.Covered
	env     scripting.Env // for the modules that statements require
	debug   *scripting.Debug
	marks   []mark // see debug.go

	advise  sync.Once // fills in advices
	advices []scripting.Finding
}

// chunk is one compiled file.
type chunk struct {
	file  scripting.File
	proto *lua.FunctionProto
	tree  *tree
}

var _ scripting.Program = (*program)(nil)

// Compile compiles a component and the modules that it requires, by name and
// transitively, and runs it once for its definition.
func (l *Language) Compile(f scripting.File, env scripting.Env) (scripting.Program, error) {
	p, err := read(f, env, componentFile)
	if err != nil {
		return nil, err
	}
	if err := p.define(); err != nil {
		return nil, err
	}
	return p, nil
}

// fileKind is what a file is compiled as.
type fileKind bool

const (
	componentFile fileKind = false // and modules and tests
	plainFile     fileKind = true  // may assign to globals
)

// read compiles a file and the modules that it requires.
func read(f scripting.File, env scripting.Env, kind fileKind) (*program, error) {
	if err := supported(); err != nil {
		return nil, f.Error(0, "load", err)
	}
	p := &program{
		files: map[string]*chunk{}, modules: map[string]*chunk{}, data: map[string]scripting.Value{}, stdlib: map[string]*scripting.Module{},
		probe: env.Probe, debug: env.Debug, env: env,
	}
	for _, m := range env.Modules {
		p.stdlib[m.Name] = m
	}
	main, err := p.compile(f, kind)
	if err != nil {
		return nil, err
	}
	p.main = main
	p.files[f.Name] = main
	var errs []error
	p.require(main, env, &errs)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

func (p *program) Definition() *scripting.Definition { return p.def }

func (p *program) Exprs() []scripting.Expr {
	var out []scripting.Expr
	for _, c := range p.files {
		for _, e := range c.tree.exprs {
			e.Over = c.tree.signalAt(e.Line)
			out = append(out, e)
		}
	}
	return out
}

// require compiles the modules that c names.
func (p *program) require(c *chunk, env scripting.Env, errs *[]error) {
	for _, r := range c.tree.requires {
		if _, ok := p.stdlib[r.name]; ok || r.name == "weir" || p.modules[r.name] != nil {
			continue
		}
		f, err := env.Require(r.name)
		if err != nil {
			*errs = append(*errs, c.file.Error(r.line, "load", err))
			continue
		}
		if scripting.IsData(f.Name) {
			x, err := env.Data(f)
			if _, ok := errors.AsType[*scripting.Error](err); err != nil && !ok {
				err = c.file.Error(r.line, "load", err)
			}
			if err != nil {
				*errs = append(*errs, err)
			}
			p.data[r.name] = x
			continue
		}
		m, err := p.compile(f, componentFile)
		if err != nil {
			*errs = append(*errs, err)
			continue
		}
		p.modules[r.name] = m
		p.files[f.Name] = m
		p.require(m, env, errs)
	}
}

// compile compiles a file of the program.
func (p *program) compile(f scripting.File, kind fileKind) (*chunk, error) {
	first := len(p.marks)
	c, err := compile(f, kind, func(f scripting.File, stmts []ast.Stmt) []ast.Stmt { return p.mark(f, p.cover(f, stmts)) })
	if err != nil {
		return nil, err
	}
	p.findLocals(c, first)
	return c, nil
}

// compile compiles a file. change may change its tree before; nil: it does not.
func compile(f scripting.File, kind fileKind, change func(scripting.File, []ast.Stmt) []ast.Stmt) (*chunk, error) {
	f.Text = strings.TrimPrefix(f.Text, "\ufeff") // as Lua does with files
	if line, err := checkNesting(f.Text); err != nil {
		return nil, f.Error(line, "load", err)
	}
	stmts, err := parse.Parse(strings.NewReader(f.Text), f.Name)
	if err != nil {
		return nil, syntaxError(f, err)
	}
	if change != nil {
		stmts = change(f, stmts)
	}
	t := walk(f, stmts)
	if len(t.errs) > 0 {
		return nil, errors.Join(t.errs...)
	}
	proto, err := compileTree(t.body, f.Name)
	if err != nil {
		return nil, syntaxError(f, t.mapLines(err))
	}
	t.closeGotos(proto)
	if kind == componentFile {
		if errs := globalWrites(f, proto, nil); len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
	}
	return &chunk{file: f, proto: proto, tree: t}, nil
}

// compileTree is lua.Compile, which panics on what it did not think of.
func compileTree(stmts []ast.Stmt, name string) (proto *lua.FunctionProto, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot compile: %v", r)
		}
	}()
	return lua.Compile(stmts, name)
}

func syntaxError(f scripting.File, err error) error {
	if e, ok := errors.AsType[*parse.Error](err); ok {
		out := f.Error(e.Pos.Line, "load", nil)
		if e.Pos.Line == parse.EOF {
			out = f.Error(strings.Count(strings.TrimRight(f.Text, "\n"), "\n")+1, "load", nil)
			out.Err = fmt.Errorf("%s at the end of the file", e.Message)
			out.Hint = "an end or a bracket is missing"
			return out
		}
		out.Col = tokenStart(f.Text, e)
		out.Err = fmt.Errorf("%s near %q", e.Message, e.Token)
		out.Hint = foreignOperatorHint(f.Text, e.Pos.Line, out.Col)
		return out
	}
	if e, ok := errors.AsType[*lua.CompileError](err); ok {
		return f.Error(e.Line, "load", errors.New(e.Message))
	}
	return f.Error(0, "load", err)
}

// tokenStart is the column where the token begins that a syntax error is about;
// gopher-lua tells where it ends.
func tokenStart(text string, e *parse.Error) int {
	for range e.Pos.Line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	line, _, _ := strings.Cut(text, "\n")
	if end := e.Pos.Column; end <= len(line) && strings.HasSuffix(line[:end], e.Token) {
		return end - len(e.Token) + 1
	}
	return e.Pos.Column
}

// foreignOperators are operators of other languages, and what to write in Lua.
var foreignOperators = []struct{ operator, hint string }{
	{"!=", "write ~= for values that differ"},
	{"!", "write not"},
	{"&&", "write and"},
	{"||", "write or"},
	{"+=", "write n = n + 1"},
	{"++", "write n = n + 1"},
	{"-=", "write n = n - 1"},
	{"//", "a comment begins with --"},
}

// foreignOperatorHint says what to write for an operator of another language at
// a place where the syntax of Lua ends.
func foreignOperatorHint(text string, line, col int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) || col < 1 || col > len(lines[line-1]) {
		return ""
	}
	src := lines[line-1]
	for _, o := range foreignOperators {
		if strings.HasPrefix(src[col-1:], o.operator) || len(o.operator) == 2 && strings.HasSuffix(src[:col], o.operator) {
			return o.hint
		}
	}
	return ""
}

// globalWrites finds assignments to globals in the code: what a VM keeps
// between batches is not a script's to change.
func globalWrites(f scripting.File, p *lua.FunctionProto, errs []error) []error {
	for pc, inst := range p.Code {
		if int(inst>>26) != lua.OP_SETGLOBAL {
			continue
		}
		name := p.Constants[inst&0x3ffff].String()
		e := f.Error(p.DbgSourcePositions[pc], "load", fmt.Errorf("cannot assign to global %q: globals are read-only", name))
		e.ID, e.Hint = scripting.LintGlobalWrite, "write local "+name
		errs = append(errs, e)
	}
	for _, sub := range p.FunctionPrototypes {
		errs = globalWrites(f, sub, errs)
	}
	return errs
}
