// Package clause is what the expr.* components have in common: expressions as
// arguments, a predicate that remembers what the labels decide, and the report
// of expressions that fail on a sample. It is not a component.
//
// A mistake in an expression is one of the config, found when it is decoded,
// with the place in the file and in the expression. What can only be known of
// a sample (a regular expression made of a label, a number that is none) fails
// there: that sample is left as it is, counted and shown in the node's health.
package clause

import (
	"fmt"

	"github.com/weir-run/weir/scripting/expr"
)

// Predicate is the source of an expression that compiles and is true or false.
type Predicate string

// UnmarshalText accepts what compiles.
func (p *Predicate) UnmarshalText(text []byte) error { return accept(p, text, expr.Bool) }

// MarshalText returns the source.
func (p Predicate) MarshalText() ([]byte, error) { return []byte(p), nil }

// Number is the source of an expression that compiles and is a number.
type Number string

// UnmarshalText accepts what compiles.
func (n *Number) UnmarshalText(text []byte) error { return accept(n, text, expr.Number) }

// MarshalText returns the source.
func (n Number) MarshalText() ([]byte, error) { return []byte(n), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (n Number) Compile() *expr.Program { return must(string(n), expr.Number) }

// Text is the source of an expression that compiles and is a string.
type Text string

// UnmarshalText accepts what compiles.
func (t *Text) UnmarshalText(text []byte) error { return accept(t, text, expr.String) }

// MarshalText returns the source.
func (t Text) MarshalText() ([]byte, error) { return []byte(t), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (t Text) Compile() *expr.Program { return must(string(t), expr.String) }

func accept[T ~string](into *T, text []byte, kind expr.Kind) error {
	if _, err := expr.Compile(string(text), kind, nil); err != nil {
		return err
	}
	*into = T(text)
	return nil
}

func must(src string, kind expr.Kind) *expr.Program {
	p, err := expr.Compile(src, kind, nil)
	if err != nil {
		panic(fmt.Sprintf("BUG: an expression was not checked: %v", err))
	}
	return p
}
