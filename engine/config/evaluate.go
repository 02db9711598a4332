package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/printer"
	"github.com/grafana/alloy/syntax/vm"
)

// attribute evaluates an attribute into an addressable value.
func (d *decoder) attribute(st *ast.AttributeStmt, v reflect.Value, path string) outcome {
	return d.value(st.Value, v, join(path, st.Name.Name))
}

// value evaluates an expression into an addressable value. If a list or object
// literal cannot be evaluated as a whole, its elements are evaluated
// separately, so that each has its own diagnostic.
func (d *decoder) value(e ast.Expr, v reflect.Value, path string) (o outcome) {
	for _, r := range d.references(e) {
		switch d.scope.certainty(r) {
		case unknown:
			// Resolve has already reported it, but the other elements of a list may have
			// errors too.
			d.parts(e, v, path)
			return outcome{open: true}
		case provisional:
			o.open = true
		}
	}
	err := evaluate(d.scope, e, d.references(e), v)
	if err == nil {
		if msg := d.inexact(e, v.Type()); msg != "" && !o.open {
			return d.fail(spanOf(e), path+": "+msg, "")
		}
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
		msg := message(e, v.Type(), one)
		if want, ok := strings.CutSuffix(msg, ", got capsule"); ok && one.Span == spanOf(e) {
			msg = want + ", got " + d.capsule(e)
		}
		if one.Span == spanOf(e) && typeError(one.Msg) && one.Hint == "" {
			one.Hint = d.brackets(e, v.Type())
		}
		// An error of an expression in a string shows its own position on the lines
		// below.
		msg, one.Detail, _ = strings.Cut(msg, "\n")
		one.Msg = fmt.Sprintf("%s: %s", path, msg)
		d.ds = append(d.ds, one)
		o.failed = true
	}
	return o
}

// parts evaluates the elements of a list or object literal to report their
// errors. ok is false if e is neither.
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

// inexact returns why an integer of type t cannot represent the value of e. It
// returns "" if it can, or if t is not an integer type. The evaluator wraps
// numbers that are negative or too large, and truncates fractions.
func (d *decoder) inexact(e ast.Expr, t reflect.Type) string {
	if t = deref(t); reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) || t == reflect.TypeFor[time.Duration]() {
		return ""
	}
	into := reflect.New(t).Elem()
	if !into.CanInt() && !into.CanUint() {
		return ""
	}
	var got any
	if err := evaluate(d.scope, e, d.references(e), reflect.ValueOf(&got).Elem()); err != nil {
		return ""
	}
	fits := true
	switch v := reflect.ValueOf(got); {
	case v.Kind() == reflect.String: // a number in quotes, which the evaluator parses
	case v.CanFloat():
		f := v.Float()
		whole, least, above := f == math.Trunc(f), 0.0, math.Ldexp(1, t.Bits())
		if into.CanInt() {
			least, above = -above/2, above/2
		}
		if !whole {
			return fmt.Sprintf("should be a whole number, got %v", got)
		}
		fits = least <= f && f < above
	case v.CanInt() && into.CanInt():
		fits = !into.OverflowInt(v.Int())
	case v.CanInt():
		fits = v.Int() >= 0 && !into.OverflowUint(uint64(v.Int()))
	case v.CanUint() && into.CanUint():
		fits = !into.OverflowUint(v.Uint())
	case v.CanUint():
		fits = v.Uint() <= math.MaxInt64 && !into.OverflowInt(int64(v.Uint()))
	}
	switch {
	case fits:
		return ""
	case into.CanUint() && strings.HasPrefix(fmt.Sprint(got), "-"):
		return fmt.Sprintf("must not be negative, got %v", got)
	}
	return fmt.Sprintf("%v is out of range", got)
}

// evaluate calls the evaluator and recovers from its panics, so that they do
// not end weir.
func evaluate(s *Scope, e ast.Expr, refs []Reference, v reflect.Value) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot evaluate the expression: %v", p)
		}
	}()
	return vm.New(e).Evaluate(s.variables(refs), v.Addr().Interface())
}

// capsule returns a word for a value that the library calls a capsule.
func (d *decoder) capsule(e ast.Expr) string {
	var got any
	if evaluate(d.scope, e, d.references(e), reflect.ValueOf(&got).Elem()) != nil || got == nil {
		return "capsule"
	}
	return typeWords(reflect.TypeOf(got))
}

// brackets returns a hint for an expression that would be a valid element of
// the list of type t, and "" for any other expression.
func (d *decoder) brackets(e ast.Expr, t reflect.Type) string {
	if t = deref(t); t.Kind() != reflect.Slice || evaluate(d.scope, e, d.references(e), reflect.New(t.Elem()).Elem()) != nil {
		return ""
	}
	text := " … "
	var b strings.Builder
	if _, long := e.(*ast.ObjectExpr); !long && printer.Fprint(&b, e) == nil && b.Len() <= 60 && !strings.Contains(b.String(), "\n") {
		text = b.String()
	}
	return fmt.Sprintf("a list is written in brackets: [%s]", text)
}

// typeError reports whether an evaluation failed because of the type of a value
// rather than the value itself. The library distinguishes them only in its
// internal error types.
func typeError(msg string) bool {
	return strings.Contains(msg, " should be ") || strings.Contains(msg, "expected capsule(")
}

// message rewrites a message of the library. Such a message begins with the
// failing expression, which may be long and is in the snippet anyway, and knows
// only the seven types of the language.
func message(e ast.Expr, t reflect.Type, d Diagnostic) string {
	msg := d.Msg
	ast.Walk(visitor(func(n ast.Node) {
		if spanOf(n) != d.Span || msg != d.Msg {
			return
		}
		var b strings.Builder
		if printer.Fprint(&b, n) == nil {
			msg = strings.TrimSpace(strings.TrimPrefix(d.Msg, b.String()))
		}
	}), e)
	msg = strings.TrimPrefix(plain.Replace(msg), "time: ")
	msg = arity.ReplaceAllString(msg, "number of arguments should be $1, got")
	if m := operand.FindStringSubmatch(msg); m != nil {
		msg = fmt.Sprintf("should be %s for %s, got%s", strings.ReplaceAll(m[1], " ", " or "), m[2], m[3])
	}
	if got, ok := strings.CutPrefix(msg, "expected "); ok {
		msg = "should be " + got
	}
	if want, got, ok := strings.Cut(msg, ", got "); ok && d.Span == spanOf(e) && strings.HasPrefix(want, "should be ") {
		msg = "should be " + typeWords(t) + ", got " + got
	}
	return msg
}

var (
	arity   = regexp.MustCompile(`^expected ((?:at least )?\d+) args, got`)
	operand = regexp.MustCompile(`^should be one of \[(.*)\] for binop (\S+), got(.*)`)
)

type visitor func(ast.Node)

// Visit calls the function with each expression.
func (f visitor) Visit(n ast.Node) ast.Visitor {
	if _, ok := n.(ast.Expr); ok {
		f(n)
	}
	return f
}
