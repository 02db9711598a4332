package js

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/weir-run/weir/scripting"
)

// statement is a compiled statement: a program whose value is an async function that
// runs it. The program declares new variables.
type statement struct {
	chunk      *chunk
	declares   []string
	expression bool // it ends in an expression, whose value the function returns
}

// unended are parts of the messages of esbuild about texts that end inside of a
// statement.
var unended = regexp.MustCompile(`end of file|to terminate multi-line comment`)

// isUnended reports whether a text with errors ends inside of a statement.
func isUnended(text string, errs []api.Message) bool {
	if errs[0].Text == "Unterminated string literal" { // of a template, for which there is no other message
		ended := transformStatement(text + "`")
		return len(ended.Errors) == 0 || ended.Errors[0].Text != errs[0].Text
	}
	return unended.MatchString(errs[0].Text)
}

// imports finds an import or export in the output of esbuild.
var imports = regexp.MustCompile(`(?m)^(import|export) `)

// compileStatement compiles a statement in TypeScript.
func (v *vm) compileStatement(f scripting.File) (*statement, error) {
	limitPatterns()
	if line, err := checkNesting(f.Text); err != nil {
		return nil, f.Error(line, hookLoad, err)
	}
	whole := f.Text
	r := transformStatement(whole)
	if strings.HasPrefix(strings.TrimSpace(whole), "{") { // an object, rather than a block
		if object := transformStatement("(" + whole + "\n)"); len(object.Errors) == 0 {
			r = object
		}
	}
	if len(r.Errors) > 0 {
		err := v.prog.transformErrors(f, r.Errors)
		if isUnended(whole, r.Errors) {
			return nil, fmt.Errorf("%w: %w", scripting.ErrIncomplete, err)
		}
		return nil, err
	}
	st := &statement{chunk: &chunk{file: f, code: string(r.Code)}}
	c := st.chunk
	tree, err := parser.ParseFile(nil, f.Name, c.code, 0, parser.WithDisableSourceMaps)
	if err != nil {
		if imports.MatchString(c.code) {
			e := f.Error(0, hookLoad, errors.New("cannot import or export at a prompt"))
			e.Hint = "the modules are variables, such as re and text"
			return nil, e
		}
		return nil, c.syntaxError(err)
	}
	smap, err := sourceMap(f, r.Map)
	if err != nil {
		return nil, f.Error(0, hookLoad, err)
	}
	tree.File.SetSourceMap(smap)
	c.tree, c.smap = tree, smap
	restrict(c.tree)
	c.scanTree()
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	st.rewrite(v.prompt.names)
	if c.prog, err = goja.CompileAST(c.tree, true); err != nil {
		return nil, c.syntaxError(err)
	}
	v.prog.add(c)
	v.prog.main = c // the file of errors without a position
	c.imports = map[string]*chunk{}
	return st, nil
}

func transformStatement(text string) api.TransformResult {
	return api.Transform(text, api.TransformOptions{
		Loader:         api.LoaderTS,
		Target:         api.ES2022,
		Supported:      promptSupported,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		Sourcefile:     "x",
		Banner:         "(async () => {",
		Footer:         "})",
		LegalComments:  api.LegalCommentsNone,
		Charset:        api.CharsetUTF8,
		TsconfigRaw:    `{"compilerOptions":{"experimentalDecorators":false,"useDefineForClassFields":true,"verbatimModuleSyntax":true}}`,
		LogLevel:       api.LogLevelSilent,
	})
}

// promptSupported is like supported, for statements in an async function.
var promptSupported = map[string]bool{
	"async-generator": false, "for-await": false, "top-level-await": true, "import-meta": false, "dynamic-import": false,
	"decorators": false, "using": false,
}

// rewrite turns declarations into assignments to variables of the prompt, of which
// known exist, and returns the value of the last statement.
func (st *statement) rewrite(known map[string]bool) {
	tree := st.chunk.tree
	wrapper := tree.Body[0].(*ast.ExpressionStatement).Expression.(*ast.ArrowFunctionLiteral)
	body := wrapper.Body.(*ast.BlockStatement)
	own := map[*ast.Binding]bool{}
	declared := map[string]bool{}
	var functions, list []ast.Statement
	declare := func(target ast.Node) {
		for _, id := range namesIn(target) {
			if name := id.Name.String(); !known[name] && !declared[name] {
				declared[name] = true
				st.declares = append(st.declares, name)
			}
		}
	}
	assign := func(left, right ast.Expression) ast.Statement {
		return &ast.ExpressionStatement{Expression: &ast.AssignExpression{Operator: token.ASSIGN, Left: left, Right: right}}
	}
	bindings := func(bs []*ast.Binding) {
		for _, b := range bs {
			own[b] = true
			declare(b.Target)
			right := b.Initializer
			if right == nil {
				right = &ast.UnaryExpression{Operator: token.VOID, Idx: b.Idx0(), Operand: &ast.NumberLiteral{Idx: b.Idx0(), Literal: "0", Value: int64(0)}}
			}
			list = append(list, assign(b.Target, right))
		}
	}
	for i, s := range body.List {
		switch s := s.(type) {
		case *ast.VariableStatement:
			bindings(s.List)
		case *ast.LexicalDeclaration:
			bindings(s.List)
		case *ast.FunctionDeclaration:
			declare(s.Function.Name)
			functions = append(functions, assign(s.Function.Name, s.Function))
		case *ast.ClassDeclaration:
			declare(s.Class.Name)
			list = append(list, assign(s.Class.Name, s.Class))
		case *ast.ExpressionStatement:
			if i == len(body.List)-1 {
				st.expression = true
				list = append(list, &ast.ReturnStatement{Return: s.Idx0(), Argument: s.Expression})
				continue
			}
			list = append(list, s)
		default:
			list = append(list, s)
		}
	}
	body.List = append(functions, list...)
	var vars []*ast.VariableDeclaration
	for _, d := range wrapper.DeclarationList {
		if len(d.List) == 0 || !own[d.List[0]] {
			vars = append(vars, d)
		}
	}
	wrapper.DeclarationList = vars
	if len(st.declares) > 0 {
		at := tree.Body[0].Idx0()
		let := &ast.LexicalDeclaration{Idx: at, Token: token.LET}
		for _, name := range st.declares {
			let.List = append(let.List, &ast.Binding{Target: &ast.Identifier{Name: unistring.NewFromString(name), Idx: at}})
		}
		tree.Body = append([]ast.Statement{let}, tree.Body...)
	}
}

// namesIn returns the names that a pattern declares.
func namesIn(target ast.Node) (out []*ast.Identifier) {
	switch t := target.(type) {
	case *ast.Identifier:
		return []*ast.Identifier{t}
	case *ast.Binding:
		return namesIn(t.Target)
	case *ast.AssignExpression: // with a default value
		return namesIn(t.Left)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				out = append(out, &p.Name)
			case *ast.PropertyKeyed:
				out = append(out, namesIn(p.Value)...)
			}
		}
		if t.Rest != nil {
			out = append(out, namesIn(t.Rest)...)
		}
	case *ast.ArrayPattern:
		for _, e := range t.Elements {
			if e != nil {
				out = append(out, namesIn(e)...)
			}
		}
		if t.Rest != nil {
			out = append(out, namesIn(t.Rest)...)
		}
	}
	return out
}
