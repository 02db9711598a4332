package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/diag"
	"github.com/grafana/alloy/syntax/token"
)

// Span is a range of a config file. Lines and columns start at 1. Columns are
// in bytes. The end is inclusive. If Line is 0, it is the whole file.
type Span struct {
	File            string // the path passed to Load, or a path below it if it is a directory
	Line, Col       int
	EndLine, EndCol int
}

// String returns file:line:col, or its known parts.
func (s Span) String() string {
	switch {
	case s.Line == 0:
		return s.File
	case s.Col == 0:
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Line, s.Col)
}

// Severity specifies whether a Diagnostic makes the config invalid.
type Severity uint8

// An Error makes the config invalid, a Warning does not.
const (
	Error Severity = iota
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Diagnostic is an error or a warning with its position and a hint.
type Diagnostic struct {
	Span
	Severity Severity
	Msg      string // what is wrong, lower case, no full stop
	Hint     string // what to do; may be empty
	Detail   string // details on separate lines; may be empty
}

// Error returns "file:line:col: message (hint)". The detail follows on the next
// lines, indented.
func (d Diagnostic) Error() string {
	msg := d.Msg
	if d.Severity == Warning {
		msg = "warning: " + msg
	}
	if d.Hint != "" {
		msg += " (" + d.Hint + ")"
	}
	if d.Detail != "" {
		msg += "\n" + indent(d.Detail)
	}
	if pos := d.Span.String(); pos != "" {
		return pos + ": " + msg
	}
	return msg
}

// Diagnostics are unordered until Sort. They are an error that unwraps to each
// of them. Use Err to return them as an error.
type Diagnostics []Diagnostic

// Error returns all diagnostics, one per line.
func (ds Diagnostics) Error() string {
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i] = d.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns each as an error.
func (ds Diagnostics) Unwrap() []error {
	errs := make([]error, len(ds))
	for i, d := range ds {
		errs[i] = d
	}
	return errs
}

// Err returns the errors among ds, sorted. It returns nil if there are only
// warnings.
func (ds Diagnostics) Err() error {
	var errs Diagnostics
	for _, d := range ds {
		if d.Severity == Error {
			errs = append(errs, d)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs.Sort()
}

// HasErrors reports whether one of them is an Error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// OnlyUnknown reports whether all errors are about unknown attributes or
// blocks, so that everything else has been decoded.
func (ds Diagnostics) OnlyUnknown() bool {
	return !slices.ContainsFunc(ds, func(d Diagnostic) bool {
		return d.Severity == Error && !strings.HasPrefix(d.Msg, "unknown attribute ") && !strings.HasPrefix(d.Msg, "unknown block ")
	})
}

// Sort sorts ds by position in place and removes duplicates.
func (ds Diagnostics) Sort() Diagnostics {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Msg, b.Msg),
		)
	})
	return slices.Compact(ds)
}

// indent indents every line by two columns.
func indent(lines string) string { return "  " + strings.ReplaceAll(lines, "\n", "\n  ") }

func (ds *Diagnostics) add(s Span, msg, hint string) {
	*ds = append(*ds, Diagnostic{Span: s, Msg: msg, Hint: hint})
}

// spanOf returns the position of a syntax node, which must not have a body.
func spanOf(n ast.Node) Span { return newSpan(ast.StartPos(n), ast.EndPos(n)) }

func newSpan(from, to token.Pos) Span {
	if !from.Valid() {
		return Span{}
	}
	return positions(from.Position(), to.Position())
}

func positions(p, e token.Position) Span {
	s := Span{File: p.Filename, Line: p.Line, Col: p.Column, EndLine: e.Line, EndCol: e.Column}
	if e.Line < p.Line || e.Line == p.Line && e.Column < p.Column {
		s.EndLine, s.EndCol = p.Line, p.Column
	}
	return s
}

// fromSyntax converts an error of alloy/syntax to diagnostics. at is the
// position of errors without one.
func fromSyntax(err error, at Span) (ds Diagnostics) {
	var many diag.Diagnostics
	var one diag.Diagnostic
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = diag.Diagnostics{one}
	default:
		ds.add(at, err.Error(), "")
		return ds
	}
	for _, d := range many {
		s := positions(d.StartPos, d.EndPos)
		if !d.StartPos.Valid() {
			s = at
		}
		out := Diagnostic{Span: s, Msg: d.Message}
		if d.Severity == diag.SeverityLevelWarn {
			out.Severity = Warning
		}
		if d.Value != "" {
			out.Hint = "the value is " + d.Value
		}
		ds = append(ds, out)
	}
	return ds
}
