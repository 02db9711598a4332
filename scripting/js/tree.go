package js

import (
	"fmt"
	"slices"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/scripting"
)

// keys are the keys of an object literal that contains a definition.
type keys struct {
	line  int // line of the call with the object as an argument
	lines map[string]int
}

// scanTree finds data in a file's tree that is needed before it runs: its
// imports, and the positions of the keys of definitions.
func (c *chunk) scanTree() {
	patterns := 0 // bytes
	visit(c.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpression:
			c.lookAt(n)
		case *ast.RegExpLiteral:
			size := patternSize(n.Pattern, n.Flags)
			patterns += min(size.Bytes, maxLiterals)
			if err := size.Fits(regex.MaxBytes); err != nil {
				c.errs = append(c.errs, c.error(n.Idx0(), fmt.Errorf("cannot compile pattern %q: %w", regex.Shorten(n.Pattern), err)))
			} else if len(n.Pattern) > maxPattern {
				c.errs = append(c.errs, c.error(n.Idx0(), fmt.Errorf("cannot compile a pattern of %d characters: the limit is %d", len(n.Pattern), maxPattern)))
			}
		}
		return true
	})
	if patterns > maxLiterals {
		c.errs = append(c.errs, c.file.Error(0, hookLoad, fmt.Errorf("cannot use a file whose patterns take %d MiB of memory: the limit is %d MiB", patterns>>20, maxLiterals>>20)))
	}
}

func (c *chunk) lookAt(call *ast.CallExpression) {
	name := calleeName(call.Callee)
	switch {
	case name == "require":
		text, ok := call.ArgumentList, len(call.ArgumentList) == 1
		if !ok {
			return
		}
		if s, ok := text[0].(*ast.StringLiteral); ok {
			c.requires = append(c.requires, required{name: s.Value.String(), idx: call.Idx0()})
			return
		}
		c.errs = append(c.errs, c.error(call.Idx0(), fmt.Errorf("cannot require this: require takes a constant string, so that weir knows which files a component is made of")))
	case slices.ContainsFunc(scripting.ComponentKinds, func(k scripting.ComponentKind) bool { return definer(k) == name }):
		if len(call.ArgumentList) != 1 {
			return
		}
		if o, ok := call.ArgumentList[0].(*ast.ObjectLiteral); ok {
			c.keys = append(c.keys, keys{line: c.pos(call.Idx0()).Line, lines: c.keyLines(o)})
		}
	}
}

// keyLines returns the lines of an object literal's keys.
func (c *chunk) keyLines(o *ast.ObjectLiteral) map[string]int {
	lines := map[string]int{}
	for _, p := range o.Value {
		name, idx := "", file.Idx(0)
		switch p := p.(type) {
		case *ast.PropertyKeyed:
			if s, ok := p.Key.(*ast.StringLiteral); ok && !p.Computed {
				name, idx = s.Value.String(), s.Idx
			}
			if (name == "series" || name == "stream") && isAsync(p.Value) {
				c.errs = append(c.errs, c.error(idx, asyncRemembered(name)))
			}
		case *ast.PropertyShort:
			name, idx = p.Name.Name.String(), p.Name.Idx
		}
		if name != "" {
			lines[name] = c.pos(idx).Line
		}
	}
	return lines
}

// isAsync reports whether an expression is an async function. At run time, goja
// does not distinguish async methods.
func isAsync(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.FunctionLiteral:
		return e.Async
	case *ast.ArrowFunctionLiteral:
		return e.Async
	}
	return false
}

// calleeName returns the last name of a called expression: f of f(), a.f() and
// (0, a.f)(), the form in which esbuild writes a call of an import.
func calleeName(e ast.Expression) string {
	switch e := e.(type) {
	case *ast.Identifier:
		return e.Name.String()
	case *ast.DotExpression:
		return e.Identifier.Name.String()
	case *ast.SequenceExpression:
		return calleeName(e.Sequence[len(e.Sequence)-1])
	}
	return ""
}
