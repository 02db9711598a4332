package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/vm"
)

// attribute evaluates an attribute into an addressable value.
func (d *decoder) attribute(st *ast.AttributeStmt, v reflect.Value, path string) outcome {
	return d.value(st.Value, v, join(path, st.Name.Name))
}

// value evaluates an expression into an addressable value. Elements of a list
// or an object that is written out are evaluated one by one when the whole
// fails, so that each has its own diagnostic.
func (d *decoder) value(e ast.Expr, v reflect.Value, path string) (o outcome) {
	for _, r := range appendReferences(nil, e) {
		switch d.scope.certainty(r) {
		case unknown:
			// Resolve has reported it, but the other elements of a list may
			// have mistakes of their own.
			d.parts(e, v, path)
			return outcome{open: true}
		case provisional:
			o.open = true
		}
	}
	err := evaluate(d.scope, e, v)
	if err == nil {
		return o
	}
	if before := len(d.ds); d.parts(e, v, path) && len(d.ds) > before {
		o.failed = true
		return o
	}
	ds := fromSyntax(err, spanOf(e))
	for _, one := range ds {
		if o.open && !typeError(one.Msg) {
			continue
		}
		one.Msg = fmt.Sprintf("%s: %s", path, message(e, one.Msg))
		d.ds = append(d.ds, one)
		o.failed = true
	}
	return o
}

// parts evaluates the elements of a list or object that is written out, for
// their diagnostics; ok is false when e is neither.
func (d *decoder) parts(e ast.Expr, v reflect.Value, path string) (ok bool) {
	t := deref(v.Type())
	switch e := e.(type) {
	case *ast.ParenExpr:
		return d.parts(e.Inner, v, path)
	case *ast.ArrayExpr:
		if t.Kind() != reflect.Slice {
			return false
		}
		for i, elem := range e.Elements {
			d.value(elem, reflect.New(t.Elem()).Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
		return true
	case *ast.ObjectExpr:
		if t.Kind() != reflect.Map {
			return false
		}
		for _, f := range e.Fields {
			d.value(f.Value, reflect.New(t.Elem()).Elem(), join(path, f.Name.Name))
		}
		return true
	}
	return false
}

// evaluate is the door to the evaluator, whose bugs must not end weir.
func evaluate(s *Scope, e ast.Expr, v reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot evaluate the expression: %v", p)
		}
	}()
	return vm.New(e).Evaluate(s.variables(), v.Addr().Interface())
}

// typeError reports whether an evaluation failed for the type of a value
// rather than for the value. The library has the difference in its internal
// error types only.
func typeError(msg string) bool {
	return strings.Contains(msg, " should be ") || strings.Contains(msg, "expected capsule(")
}

// message makes a sentence of the library's, which begins with the expression:
// the snippet shows that already, and it may be long.
func message(e ast.Expr, msg string) string {
	msg = plain.Replace(msg)
	for _, sep := range []string{" should be ", " expected ", " invalid "} {
		if i := strings.LastIndex(msg, sep); i >= 0 {
			return strings.TrimSpace(msg[i:])
		}
	}
	return strings.TrimSpace(msg)
}
