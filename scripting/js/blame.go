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

// goja's messages about undefined and null, and about what is no function, say
// neither which expression nor which property it was.
var (
	notObject   = regexp.MustCompile(`^TypeError: (?:Cannot convert undefined or null to object|Value is not object coercible|Value is not an object: (?:undefined|null))$`)
	notIterable = regexp.MustCompile(`^TypeError: object is not iterable`)
	notRead     = regexp.MustCompile(`^TypeError: Cannot (?:read|set) property '([^']*)' of (undefined|null)`)
	notFunction = regexp.MustCompile(`^TypeError: (?:Not a function: |Dynamic object is not callable|Object has no member '([^']*)')`)
)

// named is an error of goja's with the expression that it is about, as the script
// writes it.
func (p *program) named(c *chunk, line, col int, err error) error {
	err = p.blamed(c, line, col, err)
	if msg := err.Error(); c != nil && strings.HasPrefix(msg, "TypeError: ") && compiledImport.MatchString(msg) {
		return errors.New(c.asWritten(msg))
	}
	return err
}

// compiledImport is what is imported as esbuild writes it: import_beside.one,
// import_beside2.default, the number for a file that is imported again.
var compiledImport = regexp.MustCompile(`\bimport_(\w+)\.(default\b)?`)

var notWord = regexp.MustCompile(`\W`)

// defaultImport is an import that gives what a file exports by default a name.
var defaultImport = regexp.MustCompile(`(?m)^\s*import\s+(?:type\s+)?(\w+)\s*(?:,[^;"']*)?from\s*["'](?:[^"']*/)?([^"'/]+?)(?:\.\w+)?["']`)

// asWritten replaces what is imported in a message by its name in the script.
func (c *chunk) asWritten(msg string) string {
	names := map[string]string{} // of default imports, by the file's name
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

// blamed is an error of goja's with the expression that it is about, as it is
// compiled.
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

// nearest returns the text of that part, of all in a line, that begins nearest to
// a column; "" when there is none like that.
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

// nameable are expressions that say what they mean: names, properties, elements
// and calls.
var nameable = regexp.MustCompile(`^[A-Za-z_$][\w$.?\[\]"'()]{0,79}$`)

// short is any text that fits in a message.
var short = regexp.MustCompile(`^[^\n]{1,80}$`)

// patterns are patterns of objects.
func patterns(n ast.Node) []ast.Expression {
	if b, ok := n.(*ast.Binding); ok {
		if pattern, ok := b.Target.(*ast.ObjectPattern); ok {
			return []ast.Expression{pattern}
		}
	}
	return nil
}

// ownerOf is what a property of a name is read of.
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

// importedCallee is the function in (0, import_x.f)(), as which esbuild writes a
// call of what is imported by its name.
func importedCallee(n ast.Node) []ast.Expression {
	if call, ok := n.(*ast.CallExpression); ok {
		if s, ok := call.Callee.(*ast.SequenceExpression); ok && len(s.Sequence) == 2 {
			return s.Sequence[1:]
		}
	}
	return nil
}

// converted is what must be an object.
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

// iterated is what must be iterable.
func iterated(n ast.Node, _ string) []ast.Expression {
	switch n := n.(type) {
	case *ast.ForOfStatement:
		if into, ok := n.Into.(*ast.ForDeclaration); ok {
			if _, each := into.Target.(*ast.ArrayPattern); each {
				return nil // it may be an element that is not iterable
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

// calleeOf is what is called, by a name unless that is "".
func calleeOf(n ast.Node, name string) []ast.Expression {
	call, ok := n.(*ast.CallExpression)
	if !ok {
		return nil
	}
	if dot, ok := call.Callee.(*ast.DotExpression); ok && name != "" && dot.Identifier.Name.String() != name {
		return nil
	}
	return []ast.Expression{call.Callee}
}

// advice returns what the linter says about a line, for an error in it that says
// less; "" for nothing.
func (p *program) advice(name string, line int, err error) string {
	for _, f := range p.found {
		if !f.Warning && f.Err.File == name && f.Err.Line == line {
			return f.Advice(err, strings.HasPrefix(err.Error(), "TypeError"))
		}
	}
	return ""
}
