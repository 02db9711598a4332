package js

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
)

// goja's messages about undefined and null, and about values that are not
// functions, do not name the expression or the property.
var (
	notObject   = regexp.MustCompile(`^TypeError: (?:Cannot convert undefined or null to object|Value is not object coercible|Value is not an object: (?:undefined|null))$`)
	notIterable = regexp.MustCompile(`^TypeError: object is not iterable`)
	notRead     = regexp.MustCompile(`^TypeError: Cannot (?:read|set) property '([^']*)' of (undefined|null)`)
	notFunction = regexp.MustCompile(`^TypeError: (?:Not a function: |Dynamic object is not callable|Object has no member '([^']*)')`)
)

// named adds the expression to an error of goja, as written in the script.
func (p *program) named(c *chunk, line, col int, err error) error {
	err = p.blamed(c, line, col, err)
	if msg := err.Error(); c != nil && strings.HasPrefix(msg, "TypeError: ") && compiledImport.MatchString(msg) {
		return errors.New(c.asWritten(msg))
	}
	return err
}

// compiledImport matches imported names in the output of esbuild:
// import_next.one, import_next2.default. The number is for a file that is
// imported again.
var compiledImport = regexp.MustCompile(`\bimport_(\w+)\.(default\b)?`)

var notWord = regexp.MustCompile(`\W`)

// defaultImport matches an import that names the default export of a file.
var defaultImport = regexp.MustCompile(`(?m)^\s*import\s+(?:type\s+)?(\w+)\s*(?:,[^;"']*)?from\s*["'](?:[^"']*/)?([^"'/]+?)(?:\.\w+)?["']`)

// asWritten replaces imported names in a message by their names in the script.
func (c *chunk) asWritten(msg string) string {
	names := map[string]string{} // names of default imports, by the file's name
	for _, m := range defaultImport.FindAllStringSubmatch(c.file.Text, -1) {
		names[notWord.ReplaceAllString(m[2], "_")] = m[1]
	}
	return compiledImport.ReplaceAllStringFunc(msg, func(text string) string {
		m := compiledImport.FindStringSubmatch(text)
		if m[2] == "" {
			return ""
		}
		first := strings.TrimRight(m[1], "0123456789")
		return cmp.Or(names[m[1]], names[first], first)
	})
}

// blamed adds the expression to an error of goja, as in the compiled code.
func (p *program) blamed(c *chunk, line, col int, err error) error {
	msg := err.Error()
	var parts func(n ast.Node, name string) []ast.Expression
	var say func(expr string) string
	name := ""
	switch m := notRead.FindStringSubmatch(msg); {
	case c == nil || c.smap == nil || !strings.HasPrefix(msg, "TypeError: "):
		return err
	case m != nil:
		name, parts = m[1], ownerOf
		say = func(expr string) string { return fmt.Sprintf("%s: %s is undefined or null", msg, expr) }
	case notObject.MatchString(msg):
		parts = converted
		say = func(expr string) string {
			if strings.HasSuffix(msg, "undefined") || strings.HasSuffix(msg, "null") {
				return fmt.Sprintf("TypeError: Value is not an object: %s is undefined or null", expr)
			}
			return fmt.Sprintf("TypeError: Cannot convert undefined or null to object: %s is undefined or null", expr)
		}
	case notIterable.MatchString(msg):
		parts = iterated
		say = func(expr string) string { return fmt.Sprintf("TypeError: %s is not iterable", expr) }
	case notFunction.MatchString(msg):
		name, parts = notFunction.FindStringSubmatch(msg)[1], calleeOf
		say = func(expr string) string { return fmt.Sprintf("TypeError: %s is not a function", expr) }
	default:
		return err
	}
	if expr := p.nearest(c, line, col, nameable, func(n ast.Node) []ast.Expression { return parts(n, name) }); expr != "" {
		return errors.New(say(expr))
	}
	if strings.HasPrefix(msg, "TypeError: Value is not an object: ") {
		if expr := p.nearest(c, line, col, nameable, importedCallee); expr != "" {
			return fmt.Errorf("TypeError: %s is not a function", expr)
		}
	}
	if strings.HasSuffix(msg, "coercible") {
		if pattern := p.nearest(c, line, col, short, patterns); pattern != "" {
			return fmt.Errorf("TypeError: Cannot convert undefined or null to object: there is nothing to take %s from", pattern)
		}
	}
	return err
}

// nearest returns the text of the candidate in a line that begins nearest to a
// column, or "" if none matches like.
func (p *program) nearest(c *chunk, line, col int, like *regexp.Regexp, parts func(ast.Node) []ast.Expression) string {
	code := file.NewFile(c.file.Name, c.code, c.tree.File.Base())
	best, at := "", 1<<30
	visit(c.tree, func(n ast.Node) bool {
		for _, e := range parts(n) {
			if e == nil {
				continue
			}
			from, to := int(e.Idx0())-code.Base(), int(e.Idx1())-code.Base()
			if from < 0 || to > len(c.code) || from >= to {
				continue
			}
			pos := code.Position(from)
			_, _, l, k, ok := c.smap.Source(pos.Line, pos.Column)
			text := c.code[from:to]
			if d := max(k-col, col-k-len(text), 0); ok && l == line && d < at && like.MatchString(text) {
				best, at = text, d
			}
		}
		return true
	})
	return best
}

// nameable matches expressions that are readable in a message: names,
// properties, elements and calls.
var nameable = regexp.MustCompile(`^[A-Za-z_$][\w$.?\[\]"'()]{0,79}$`)

// short matches any text that fits in a message.
var short = regexp.MustCompile(`^[^\n]{1,80}$`)

// patterns returns destructured objects.
func patterns(n ast.Node) []ast.Expression {
	if b, ok := n.(*ast.Binding); ok {
		if pattern, ok := b.Target.(*ast.ObjectPattern); ok {
			return []ast.Expression{pattern}
		}
	}
	return nil
}

// ownerOf returns the objects whose property called name is read.
func ownerOf(n ast.Node, name string) []ast.Expression {
	switch n := n.(type) {
	case *ast.DotExpression:
		if n.Identifier.Name.String() == name {
			return []ast.Expression{n.Left}
		}
	case *ast.BracketExpression:
		return []ast.Expression{n.Left}
	}
	return nil
}

// importedCallee returns the function in (0, import_x.f)(), the form in which
// esbuild writes a call of an imported function.
func importedCallee(n ast.Node) []ast.Expression {
	if call, ok := n.(*ast.CallExpression); ok {
		if s, ok := call.Callee.(*ast.SequenceExpression); ok && len(s.Sequence) == 2 {
			return s.Sequence[1:]
		}
	}
	return nil
}

// converted returns expressions that must be objects.
func converted(n ast.Node, _ string) []ast.Expression {
	switch n := n.(type) {
	case *ast.CallExpression:
		if dot, ok := n.Callee.(*ast.DotExpression); ok {
			if id, ok := dot.Left.(*ast.Identifier); ok && (id.Name == "Object" || id.Name == "Reflect" || id.Name == "Array") && len(n.ArgumentList) > 0 {
				return n.ArgumentList[:1]
			}
		}
	case *ast.NewExpression:
		return []ast.Expression{n.Callee}
	case *ast.BinaryExpression:
		if n.Operator == token.IN || n.Operator == token.INSTANCEOF {
			return []ast.Expression{n.Right}
		}
	case *ast.Binding:
		switch n.Target.(type) {
		case *ast.ObjectPattern, *ast.ArrayPattern:
			return []ast.Expression{n.Initializer}
		}
	case *ast.AssignExpression:
		switch left := n.Left.(type) {
		case *ast.ObjectPattern, *ast.ArrayPattern:
			return []ast.Expression{n.Right}
		case *ast.DotExpression:
			return []ast.Expression{left.Left}
		case *ast.BracketExpression:
			return []ast.Expression{left.Left}
		}
	}
	return iterated(n, "")
}

// iterated returns expressions that must be iterable.
func iterated(n ast.Node, _ string) []ast.Expression {
	switch n := n.(type) {
	case *ast.ForOfStatement:
		if into, ok := n.Into.(*ast.ForDeclaration); ok {
			if _, each := into.Target.(*ast.ArrayPattern); each {
				return nil // an element may be the value that is not iterable
			}
		}
		return []ast.Expression{n.Source}
	case *ast.SpreadElement:
		return []ast.Expression{n.Expression}
	case *ast.Binding:
		if _, ok := n.Target.(*ast.ArrayPattern); ok {
			return []ast.Expression{n.Initializer}
		}
	}
	return nil
}

// calleeOf returns the called expressions, with the given name unless it is "".
func calleeOf(n ast.Node, name string) []ast.Expression {
	call, ok := n.(*ast.CallExpression)
	if !ok {
		return nil
	}
	if id, ok := call.Callee.(*ast.Identifier); ok && strings.HasPrefix(id.Name.String(), "\x00") {
		return nil // inserted for coverage or a debugger
	}
	if dot, ok := call.Callee.(*ast.DotExpression); ok && name != "" && dot.Identifier.Name.String() != name {
		return nil
	}
	return []ast.Expression{call.Callee}
}

// advice returns the linter's text about a line, to be added to an error in it,
// or "".
func (p *program) advice(name string, line int, err error) string {
	for _, f := range p.found {
		if !f.Warning && f.Err.File == name && f.Err.Line == line {
			return f.Advice(err, strings.HasPrefix(err.Error(), "TypeError"))
		}
	}
	return ""
}
