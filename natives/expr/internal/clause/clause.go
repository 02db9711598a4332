// Package clause is what the expr.* components have in common: expressions as
// arguments, which signals they are for, a predicate that remembers what the
// labels decide, and the report of expressions that fail. It is not a component.
//
// A mistake in an expression is one of the config, found when it is decoded,
// with the place in the file and in the expression. What can only be known of
// a record (a regular expression made of a label, a number that is none) fails
// there: that sample or line is left as it is, counted and shown in the node's
// health.
package clause

import (
	"fmt"

	"github.com/weir-run/weir/engine/expr"
)

// Predicate is the source of an expression over samples, lines or both that
// compiles and is true or false.
type Predicate string

// UnmarshalText accepts what compiles.
func (p *Predicate) UnmarshalText(text []byte) error {
	return accept(p, text, expr.Bool, expr.CompileEither)
}

// MarshalText returns the source.
func (p Predicate) MarshalText() ([]byte, error) { return []byte(p), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (p Predicate) Compile() expr.Programs { return must(p, expr.Bool, expr.CompileEither) }

// Text is the source of an expression over samples, lines or both that compiles
// and is a string.
type Text string

// UnmarshalText accepts what compiles.
func (t *Text) UnmarshalText(text []byte) error {
	return accept(t, text, expr.String, expr.CompileEither)
}

// MarshalText returns the source.
func (t Text) MarshalText() ([]byte, error) { return []byte(t), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (t Text) Compile() expr.Programs { return must(t, expr.String, expr.CompileEither) }

// SampleNumber is the source of an expression over samples that compiles and is a
// number.
type SampleNumber string

// UnmarshalText accepts what compiles.
func (n *SampleNumber) UnmarshalText(text []byte) error {
	return accept(n, text, expr.Number, expr.Compile)
}

// MarshalText returns the source.
func (n SampleNumber) MarshalText() ([]byte, error) { return []byte(n), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (n SampleNumber) Compile() *expr.Program { return must(n, expr.Number, expr.Compile) }

// SampleText is the source of an expression over samples that compiles and is a
// string.
type SampleText string

// UnmarshalText accepts what compiles.
func (t *SampleText) UnmarshalText(text []byte) error {
	return accept(t, text, expr.String, expr.Compile)
}

// MarshalText returns the source.
func (t SampleText) MarshalText() ([]byte, error) { return []byte(t), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (t SampleText) Compile() *expr.Program { return must(t, expr.String, expr.Compile) }

// LineText is the source of an expression over log lines that compiles and is a
// string.
type LineText string

// UnmarshalText accepts what compiles.
func (t *LineText) UnmarshalText(text []byte) error {
	return accept(t, text, expr.String, expr.CompileLogs)
}

// MarshalText returns the source.
func (t LineText) MarshalText() ([]byte, error) { return []byte(t), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (t LineText) Compile() *expr.Program { return must(t, expr.String, expr.CompileLogs) }

// compiling is expr.Compile, expr.CompileLogs or expr.CompileEither.
type compiling[P any] func(src string, kind expr.Kind, args map[string]any) (P, error)

func accept[T ~string, P any](into *T, text []byte, kind expr.Kind, compile compiling[P]) error {
	if _, err := compile(string(text), kind, nil); err != nil {
		return err
	}
	*into = T(text)
	return nil
}

func must[T ~string, P any](src T, kind expr.Kind, compile compiling[P]) P {
	p, err := compile(string(src), kind, nil)
	if err != nil {
		panic(fmt.Sprintf("BUG: an expression was not checked: %v", err))
	}
	return p
}
