package js

import (
	"fmt"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/weir-run/weir/scripting"
)

// write checks the target of an assignment, of ++, -- and delete, and of a loop.
func (l *linter) write(target ast.Expression, sc *lintScope) {
	switch t := target.(type) {
	case *ast.Identifier:
		l.writeName(t, sc)
	case *ast.DotExpression:
		l.writeGlobal(t.Left, t.Identifier.Name.String(), t.Identifier.Idx, sc)
	case *ast.BracketExpression:
		if name, ok := constant(t.Member); ok {
			l.writeGlobal(t.Left, name, t.Member.Idx0(), sc)
		} else if _, number := t.Member.(*ast.NumberLiteral); !number {
			l.cache(t.Left, "{}", t.Left.Idx0(), sc)
		}
	case *ast.AssignExpression: // with a default value
		l.write(t.Left, sc)
	case *ast.ArrayPattern:
		for _, e := range t.Elements {
			l.write(e, sc)
		}
		l.write(t.Rest, sc)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				l.write(&p.Name, sc)
			case *ast.PropertyKeyed:
				l.write(p.Value, sc)
			}
		}
		l.write(t.Rest, sc)
	}
}

// writeName checks for an assignment to a name that is not declared.
func (l *linter) writeName(id *ast.Identifier, sc *lintScope) {
	name := id.Name.String()
	if _, at := sc.find(name); at != nil {
		return
	}
	if _, ok := l.globals[name]; ok {
		l.addFinding(scripting.LintGlobalWrite, false, id.Idx, fmt.Errorf("cannot assign to global %q: globals are read-only", name), "use another name, and declare it with let")
		return
	}
	l.addFinding(scripting.LintGlobalWrite, false, id.Idx, fmt.Errorf("cannot assign to %s: it is not declared", name), "write let "+name)
}

// writeGlobal checks for a change of a member of a built-in object.
func (l *linter) writeGlobal(owner ast.Expression, name string, at file.Idx, sc *lintScope) {
	if of := l.builtIn(owner, sc); of != "" && l.prog.test == nil {
		l.addFinding(scripting.LintGlobalWrite, false, at, fmt.Errorf("cannot set %q of %s: globals are read-only", name, of), "declare a variable or a function in the script, or a state")
	}
}

// builtIn returns the name of a built-in object, such as Math or String.prototype,
// or "".
func (l *linter) builtIn(e ast.Expression, sc *lintScope) string {
	switch e := e.(type) {
	case *ast.Identifier:
		name := e.Name.String()
		if _, at := sc.find(name); at == nil && l.globals[name] != nil || name == "globalThis" && at == nil {
			return name
		}
	case *ast.DotExpression:
		if of := l.builtIn(e.Left, sc); of != "" && e.Identifier.Name == "prototype" {
			return of + ".prototype"
		}
	}
	return ""
}

// moduleDepth is the number of functions around the statements of a file.
const moduleDepth = 1

// keptBetweenCalls returns what is known of an object, Map or Set that lives as long
// as its VM, or nil.
func (l *linter) keptBetweenCalls(b *ast.Binding) *known {
	id, ok := b.Target.(*ast.Identifier)
	if !ok || l.depth != moduleDepth || l.prog.test != nil || l.bounded[id.Name.String()] {
		return nil
	}
	kind := ""
	switch e := b.Initializer.(type) {
	case *ast.ObjectLiteral:
		if len(e.Value) == 0 {
			kind = "{}"
		}
	case *ast.NewExpression:
		if c, ok := e.Callee.(*ast.Identifier); ok && (c.Name == "Map" || c.Name == "Set") {
			kind = c.Name.String()
		}
	}
	if kind == "" {
		return nil
	}
	return &known{Own: kept{long: kind}, Name: id.Name.String()}
}

// growing contains the methods that add a key, and the class that has them.
var growing = map[string]string{"set": "Map", "add": "Set"}

// grown checks for a call such as seen.add(key).
func (l *linter) grown(e *ast.CallExpression, sc *lintScope) {
	dot, ok := e.Callee.(*ast.DotExpression)
	if !ok || len(e.ArgumentList) == 0 {
		return
	}
	if kind := growing[dot.Identifier.Name.String()]; kind != "" {
		if _, fixed := constant(e.ArgumentList[0]); !fixed {
			l.cache(dot.Left, kind, dot.Left.Idx0(), sc)
		}
	}
}

// cache warns of an object of a kind that a function adds keys to although it lives
// as long as its VM.
func (l *linter) cache(owner ast.Expression, kind string, at file.Idx, sc *lintScope) {
	id, ok := owner.(*ast.Identifier)
	if !ok || l.depth <= moduleDepth {
		return
	}
	k, _ := sc.find(id.Name.String())
	if keptOf(k).long != kind {
		return
	}
	l.addFinding(scripting.LintUnboundedCache, true, at, fmt.Errorf("%s lives as long as its VM: each VM has its own, and a reload empties it", k.Name),
		"declare it as state: { "+k.Name+": state.lru({ max: 10000 }) }, which is shared, bounded and kept over a reload")
}

// findBounded collects the names of objects that the file removes keys from, or
// measures.
func (l *linter) findBounded() {
	note := func(e ast.Expression) {
		if id, ok := e.(*ast.Identifier); ok {
			l.bounded[id.Name.String()] = true
		}
	}
	visit(l.c.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DotExpression:
			switch n.Identifier.Name {
			case "delete", "clear", "size":
				note(n.Left)
			}
		case *ast.UnaryExpression:
			if b, ok := n.Operand.(*ast.BracketExpression); ok && n.Operator == token.DELETE {
				note(b.Left)
			}
		}
		return true
	})
}
