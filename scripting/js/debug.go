package js

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"

	"github.com/weir-run/weir/scripting"
)

// goja cannot stop before a statement and does not give access to the variables
// of a function. A file that is compiled for a debugger therefore calls debugGlobal
// before each statement, with the number of the statement and a function that reads
// and writes the variables in its scope:
//
//	debugGlobal(7, (i, set, x) => { switch (i) { case 0: return set ? a = x : a; … } })

// debugGlobal is the name of that function, and the other names are those of the
// parameters. No source can write them.
const (
	debugGlobal   = "\x00debug"
	indexVariable = "\x00i"
	setVariable   = "\x00set"
	newValue      = "\x00x"
)

// mark is a statement with the variables in its scope.
type mark struct {
	scripting.DebugStatement
	*function
	variables []variable // the outermost first; a name may occur more than once
}

// function is a function in the source.
type function struct {
	depth    int // 1 for the function that a file is compiled to
	from, to int // lines
}

// variable is a name that code can use.
type variable struct {
	name     string // in the source
	code     ast.Expression
	imported bool // it cannot be assigned to
	depth    int  // of the function that declares it
}

// marker inserts the calls of a debugger.
type marker struct {
	c         *chunk
	at        func(file.Idx) (line, col int)
	lines     []string // of the source
	words     map[string]bool
	functions []*function
	visible   []variable
	marks     []mark
	access    ast.Expression // for visible; nil: not known
}

// mark changes the tree of a file so that it calls the debugger.
func (p *program) mark(c *chunk) {
	if p.debug == nil {
		return
	}
	if c.smap == nil { // there is no code
		p.debug.AddFile(c.file, len(p.marks), nil)
		return
	}
	m := &marker{c: c, at: c.sourcePosition(), lines: strings.Split(c.file.Text, "\n"), words: map[string]bool{}}
	for _, w := range identifiers.FindAllString(c.file.Text, -1) {
		m.words[w] = true
	}
	k := c.counters(len(p.marks))
	k.marker = m
	k.inside(reflect.ValueOf(c.tree))
	for i, s := range p.debug.AddFile(c.file, k.base, k.statements) {
		m.marks[i].DebugStatement = s
	}
	p.marks = append(p.marks, m.marks...)
}

var identifiers = regexp.MustCompile(`[\pL_$][\pL\pN_$]*`)

// declare makes a name visible, unless esbuild has generated it.
func (m *marker) declare(id *ast.Identifier) {
	if id == nil {
		return
	}
	if name := m.sourceName(id.Name.String(), id.Idx); name != "" {
		m.visible = append(m.visible, variable{name: name, code: id, depth: len(m.functions)})
	}
}

// sourceName returns the name in the source of a name in the code, or "" if there is
// none. esbuild renames a variable that hides another one: x to x2.
func (m *marker) sourceName(name string, at file.Idx) string {
	short := strings.TrimRight(name, "0123456789")
	if word := m.wordAt(at); word == name || word != "" && strings.TrimRight(word, "0123456789") == short && strings.HasPrefix(name, word) {
		return word
	}
	for _, word := range []string{name, short} {
		if m.words[word] {
			return word
		}
	}
	return ""
}

// wordAt returns the identifier in the source at the position of code.
func (m *marker) wordAt(idx file.Idx) string {
	line, col := m.at(idx)
	if line < 1 || line > len(m.lines) || col < 1 || col > len(m.lines[line-1]) {
		return ""
	}
	text := m.lines[line-1][col-1:]
	if at := identifiers.FindStringIndex(text); at != nil && at[0] == 0 {
		return text[:at[1]]
	}
	return ""
}

// declareAll makes the names of a pattern visible.
func (m *marker) declareAll(target ast.Node) {
	switch t := target.(type) {
	case *ast.Identifier:
		m.declare(t)
	case *ast.AssignExpression: // with a default
		m.declareAll(t.Left)
	case *ast.Binding:
		m.declareAll(t.Target)
	case *ast.SpreadElement:
		m.declareAll(t.Expression)
	case *ast.PropertyShort:
		m.declare(&t.Name)
	case *ast.PropertyKeyed:
		m.declareAll(t.Value)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			m.declareAll(p)
		}
		m.declareAll(t.Rest)
	case *ast.ArrayPattern:
		for _, e := range t.Elements {
			m.declareAll(e)
		}
		m.declareAll(t.Rest)
	}
}

// enter makes the names visible that a node declares for its parts, until leave.
func (m *marker) enter(n any) (leave func()) {
	leave = m.scope()
	switch n := n.(type) {
	case *ast.FunctionLiteral:
		return m.function(n, n.Name, n.ParameterList, n.DeclarationList, leave)
	case *ast.ArrowFunctionLiteral:
		return m.function(n, nil, n.ParameterList, n.DeclarationList, leave)
	case *ast.ClassStaticBlock:
		return m.function(n, nil, nil, n.DeclarationList, leave)
	case *ast.ClassLiteral:
		m.declare(n.Name)
	case *ast.ForStatement:
		if d, ok := n.Initializer.(*ast.ForLoopInitializerLexicalDecl); ok {
			m.bindings(d.LexicalDeclaration.List)
		}
	case *ast.ForInStatement:
		m.loopVariable(n.Into)
	case *ast.ForOfStatement:
		m.loopVariable(n.Into)
	case *ast.CatchStatement:
		m.declareAll(n.Parameter)
	}
	return leave
}

// enterList makes the names visible that a list of statements declares.
func (m *marker) enterList(ss []ast.Statement) (leave func()) {
	leave = m.scope()
	for _, s := range ss {
		switch s := s.(type) {
		case *ast.LexicalDeclaration:
			m.bindings(s.List)
		case *ast.ClassDeclaration:
			m.declare(s.Class.Name)
		case *ast.FunctionDeclaration:
			m.declare(s.Function.Name)
		}
	}
	return leave
}

// scope returns a function that hides the names that become visible from now on.
func (m *marker) scope() func() {
	n := len(m.visible)
	m.access = nil
	return func() { m.visible, m.access = m.visible[:n], nil }
}

func (m *marker) function(n ast.Node, name *ast.Identifier, params *ast.ParameterList, vars []*ast.VariableDeclaration, leave func()) func() {
	from, _ := m.at(n.Idx0())
	to, _ := m.at(n.Idx1() - 1)
	m.declare(name)
	m.functions = append(m.functions, &function{len(m.functions) + 1, from, to})
	if len(m.functions) == 1 {
		m.imports()
	} else if params != nil {
		m.bindings(params.List)
		m.declareAll(params.Rest)
	}
	for _, v := range vars {
		m.bindings(v.List)
	}
	return func() {
		m.functions = m.functions[:len(m.functions)-1]
		leave()
	}
}

func (m *marker) bindings(list []*ast.Binding) {
	for _, b := range list {
		m.declareAll(b)
	}
}

func (m *marker) loopVariable(into ast.ForInto) {
	if d, ok := into.(*ast.ForDeclaration); ok {
		m.declareAll(d.Target)
	}
}

// imports makes the imported names visible that the file uses: esbuild replaces
// them by properties of the imported module, import_lib.name.
func (m *marker) imports() {
	known := map[string]bool{}
	visit(m.c.tree, func(n ast.Node) bool {
		dot, ok := n.(*ast.DotExpression)
		if !ok {
			return true
		}
		id, ok := dot.Left.(*ast.Identifier)
		if !ok || !strings.HasPrefix(id.Name.String(), "import_") || m.words[id.Name.String()] {
			return true
		}
		if name := m.wordAt(id.Idx); name != "" && !known[name] {
			known[name] = true
			m.visible = append(m.visible, variable{name: name, code: dot, imported: true, depth: 1})
		}
		return true
	})
}

// call returns the call before a statement.
func (m *marker) call(at file.Idx, number int) ast.Statement {
	m.marks = append(m.marks, mark{function: m.functions[len(m.functions)-1], variables: slices.Clone(m.visible)})
	if m.access == nil {
		m.access = accessor(m.visible, at)
	}
	return &ast.ExpressionStatement{Expression: &ast.CallExpression{
		Callee:          &ast.Identifier{Name: unistring.NewFromString(debugGlobal), Idx: at},
		LeftParenthesis: at, RightParenthesis: at,
		ArgumentList: []ast.Expression{&ast.NumberLiteral{Idx: at, Value: int64(number)}, m.access},
	}}
}

// accessor returns a function that returns or sets a variable by its number. The
// number after the last variable is that of this.
func accessor(variables []variable, at file.Idx) ast.Expression {
	name := func(name string) *ast.Identifier {
		return &ast.Identifier{Name: unistring.NewFromString(name), Idx: at}
	}
	sw := &ast.SwitchStatement{Switch: at, Discriminant: name(indexVariable), Default: -1, RightBrace: at}
	add := func(x ast.Expression) {
		sw.Body = append(sw.Body, &ast.CaseStatement{
			Case: at, Test: &ast.NumberLiteral{Idx: at, Value: int64(len(sw.Body))},
			Consequent: []ast.Statement{&ast.ReturnStatement{Return: at, Argument: x}},
		})
	}
	for _, v := range variables {
		if v.imported {
			add(v.code)
			continue
		}
		id := &ast.Identifier{Name: v.code.(*ast.Identifier).Name, Idx: at}
		add(&ast.ConditionalExpression{
			Test: name(setVariable), Consequent: &ast.AssignExpression{Operator: token.ASSIGN, Left: id, Right: name(newValue)}, Alternate: id,
		})
	}
	add(&ast.ThisExpression{Idx: at})
	params := &ast.ParameterList{Opening: at, Closing: at}
	for _, p := range []string{indexVariable, setVariable, newValue} {
		params.List = append(params.List, &ast.Binding{Target: name(p)})
	}
	return &ast.ArrowFunctionLiteral{Start: at, ParameterList: params, Body: &ast.BlockStatement{LeftBrace: at, List: []ast.Statement{sw}, RightBrace: at}}
}

// openDebug creates debugGlobal.
func (v *vm) openDebug() {
	if v.prog.debug == nil {
		return
	}
	v.paused = &paused{v: v, programs: map[string]*goja.Program{}}
	fn := v.rt.ToValue(v.paused.atStatement)
	v.must(v.rt.GlobalObject().DefineDataProperty(debugGlobal, fn, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
}
