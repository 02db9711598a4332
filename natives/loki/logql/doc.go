// Package logql runs pipelines of LogQL, such as
//
//	| json | level="error" | line_format "{{.msg}}"
//
// on lines as they pass, with Loki's own code: results are those of a query. Where
// a stage is plain, as json with names of members, ours takes its place, which
// leaves lines that are not plain to Loki's. It is not a component; stage.logql is
// its user.
//
// It is the only package that links pkg/logql of Loki, which is AGPL-3.0, and does
// so only in files that the build tag nologql leaves out: without them every
// pipeline is refused when it is parsed, and the rest of weir is as it was.
package logql

import "github.com/weir-run/weir/natives/loki/internal/selector"

// Source is the text of a pipeline that parses: pipelines that are equal are
// equal by ==. The zero value is none.
type Source string

// UnmarshalText accepts what Parse does.
func (s *Source) UnmarshalText(text []byte) error {
	if _, err := Parse(string(text)); err != nil {
		return err
	}
	*s = Source(text)
	return nil
}

// MarshalText returns the text.
func (s Source) MarshalText() ([]byte, error) { return []byte(s), nil }

// Error is a mistake in a pipeline.
type Error struct {
	Source string // the whole pipeline
	Offset int    // of the mistake, in bytes; -1 when it is not known
	Msg    string
}

// Error returns the message with its place, if that is known.
func (e *Error) Error() string {
	msg := "cannot use pipeline: " + e.Msg
	if e.Offset < 0 || e.Source == "" {
		return msg
	}
	return msg + selector.Place(e.Source, e.Offset)
}
