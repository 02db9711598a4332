// Package logql runs LogQL pipelines, such as
//
//	| json | level="error" | line_format "{{.msg}}"
//
// on lines, with Loki's own code: the results are those of a query. Simple
// stages, such as json with names of members, are replaced by faster ones of this
// package, which leave unusual lines to Loki's code. The package is not a
// component; stage.logql uses it.
//
// It is the only package that links pkg/logql of Loki, which is AGPL-3.0, and
// only in files that the build tag nologql excludes. With that tag, every
// pipeline is refused when it is parsed, and the rest of weir is unchanged.
package logql

import "github.com/weir-run/weir/natives/loki/internal/selector"

// Source is the text of a valid pipeline. Equal pipelines are equal by ==. The
// zero value means that there is no pipeline.
type Source string

// UnmarshalText accepts the texts that Parse accepts.
func (s *Source) UnmarshalText(text []byte) error {
	if _, err := Parse(string(text)); err != nil {
		return err
	}
	*s = Source(text)
	return nil
}

// MarshalText returns the text.
func (s Source) MarshalText() ([]byte, error) { return []byte(s), nil }

// Error is an error in a pipeline.
type Error struct {
	Source string // the whole pipeline
	Offset int    // position of the error, in bytes; -1 if it is unknown
	Msg    string
}

// Error returns the message with its position, if it is known.
func (e *Error) Error() string {
	msg := "cannot use pipeline: " + e.Msg
	if e.Offset < 0 || e.Source == "" {
		return msg
	}
	return msg + selector.Place(e.Source, e.Offset)
}
