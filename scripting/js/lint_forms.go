package js

import (
	"fmt"
	"slices"

	"github.com/dop251/goja/ast"

	"github.com/weir-run/weir/scripting"
)

// noRandomness explains why Math.random does not exist.
const (
	noRandomness    = "there is no randomness in a script: the same input gives the same output"
	insteadOfRandom = `to keep one in ten, import hash from "weir/hash" and write hash.bucket(s.labels.instance ?? "", 10) === 0`
)

// ofArrays are methods that arrays have and batches do not.
var ofArrays = []string{"forEach", "map", "reduce", "some", "every", "find", "findIndex", "flatMap", "slice", "sort", "push", "pop", "at", "entries", "values", "keys", "includes", "indexOf", "concat", "join"}

// insteadOf returns a replacement for a member that an object does not have.
func (l *linter) insteadOf(owner *known, name string) string {
	t := owner.Object
	switch {
	case t.Element == nil:
		return ""
	case name == "size" || name == "count":
		return "write " + owner.Name + ".length"
	case name == "at":
		return fmt.Sprintf("write %s[0]", owner.Name)
	case slices.Contains(ofArrays, name):
		hint := fmt.Sprintf("write for (const r of %s) { … }", owner.Name)
		if _, ok := t.Method("each"); ok {
			hint += fmt.Sprintf(" or %s.each((r) => { … })", owner.Name)
		}
		return hint + fmt.Sprintf("; [...%s] is an array of its records", owner.Name)
	}
	return ""
}

// called checks that a called value is a function.
func (l *linter) called(k *known, callee ast.Expression) {
	if l.prog.test != nil || k == nil {
		return
	}
	at := callee.Idx0()
	switch c := callee.(type) {
	case *ast.DotExpression:
		at = c.Identifier.Idx
	case *ast.Identifier:
	default:
		return
	}
	l.rules.Called(k, "", int(at))
}

// iterable checks the iterated value of a for of loop.
func (l *linter) iterable(k *known, source ast.Expression) {
	switch {
	case k == nil:
	case k.Fn != nil && k.Fn.Result.Kind == scripting.KindSequence:
		l.addFinding(scripting.LintWrongLoop, false, source.Idx0(), fmt.Errorf("cannot go over %s: it is a function, which must be called", k.Name), "write for (const r of "+k.Name+"(…)) { … }")
	case l.isRecord(k):
		l.addFinding(scripting.LintWrongLoop, false, source.Idx0(), fmt.Errorf("cannot go over %s: a %s is not iterable", k.Name, k.Object.Name), "write for (const [name, value] of Object.entries("+k.Name+".labels)) { … } for its labels")
	}
}

// destructured checks for an array pattern that is applied to a record: for of
// returns only records, whereas other languages return an index and a record.
func (l *linter) destructured(k *known, pattern *ast.ArrayPattern) {
	if l.isRecord(k) {
		l.addFinding(scripting.LintWrongLoop, false, pattern.LeftBracket, fmt.Errorf("cannot destructure a %s as an array: the iterator gives one value at a time", k.Object.Name), "write for (const r of …) { … }")
	}
}

// isRecord reports whether a value is a record or a series, which are not
// arrays.
func (l *linter) isRecord(k *known) bool {
	t := l.rules.Table
	return k != nil && k.Object != nil && slices.Contains([]*scripting.ObjectType{t.Record, t.Copy, t.Line, t.LineCopy, t.Series, t.Stream}, k.Object)
}
