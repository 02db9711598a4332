// Package clause is the common part of the expr.* components: expressions as
// arguments, the signals that they support, a predicate that caches the results
// of labels, and the report of failing expressions. It is not a component.
//
// An invalid expression is an error in the config. It is reported when the config
// is decoded, with the position in the file and in the expression. Errors that
// depend on a record (a regular expression built from a label, a text that is not
// a number) occur at run time: the sample or line is left unchanged, and the
// failure is counted and shown in the node's health.
package clause

import (
	"fmt"

	"github.com/weir-run/weir/engine/expr"
)

// Predicate is the source of an expression over samples, lines or both that
// compiles and returns a boolean.
type Predicate string

// UnmarshalText accepts expressions that compile.
func (p *Predicate) UnmarshalText(text []byte) error {
	return accept(p, text, expr.Bool, expr.CompileEither)
}

// MarshalText returns the source.
func (p Predicate) MarshalText() ([]byte, error) { return []byte(p), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (p Predicate) Compile() expr.Programs { return must(p, expr.Bool, expr.CompileEither) }

// Text is the source of an expression over samples, lines or both that compiles
// and returns a string.
type Text string

// UnmarshalText accepts expressions that compile.
func (t *Text) UnmarshalText(text []byte) error {
	return accept(t, text, expr.String, expr.CompileEither)
}

// MarshalText returns the source.
func (t Text) MarshalText() ([]byte, error) { return []byte(t), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (t Text) Compile() expr.Programs { return must(t, expr.String, expr.CompileEither) }

// SampleNumber is the source of an expression over samples that compiles and
// returns a number.
type SampleNumber string

// UnmarshalText accepts expressions that compile.
func (n *SampleNumber) UnmarshalText(text []byte) error {
	return accept(n, text, expr.Number, expr.Compile)
}

// MarshalText returns the source.
func (n SampleNumber) MarshalText() ([]byte, error) { return []byte(n), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (n SampleNumber) Compile() *expr.Program { return must(n, expr.Number, expr.Compile) }

// SampleText is the source of an expression over samples that compiles and
// returns a string.
type SampleText string

// UnmarshalText accepts expressions that compile.
func (t *SampleText) UnmarshalText(text []byte) error {
	return accept(t, text, expr.String, expr.Compile)
}

// MarshalText returns the source.
func (t SampleText) MarshalText() ([]byte, error) { return []byte(t), nil }

// Compile returns the expression. It panics on one that UnmarshalText refuses.
func (t SampleText) Compile() *expr.Program { return must(t, expr.String, expr.Compile) }

// LineText is the source of an expression over log lines that compiles and
// returns a string.
type LineText string

// UnmarshalText accepts expressions that compile.
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
