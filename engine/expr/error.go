package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"
)

// Error is a mistake in an expression, or its failure on a sample.
type Error struct {
	Source string // the whole expression
	Line   int    // 1-based; 0 when the place is not known
	Column int    // 1-based, in runes
	Msg    string

	// other: it reads what only the other signal has.
	other bool
	// failure: it was found when the expression was evaluated.
	failure bool
}

// Error returns the message with its place, the line with a caret under it, and,
// of a mistake in the expression, where the language is described.
func (e *Error) Error() string {
	msg := "cannot use expression: " + e.Msg
	if e.Line > 0 {
		msg += fmt.Sprintf(" (%d:%d)%s", e.Line, e.Column, e.Snippet())
	}
	if !e.failure {
		msg += "\n 'weir help expr' describes expressions"
	}
	return msg
}

// Snippet returns the line of the mistake and a caret line, each after a line
// break; "" when the place is not known.
func (e *Error) Snippet() string {
	if e.Line == 0 {
		return ""
	}
	lines := strings.Split(e.Source, "\n")
	if e.Line > len(lines) {
		return ""
	}
	// A tab takes one column, so that the caret is under its place.
	line := strings.ReplaceAll(strings.TrimSuffix(lines[e.Line-1], "\r"), "\t", " ")
	return "\n | " + line + "\n | " + strings.Repeat(" ", e.Column-1) + "^"
}

// errorAt makes an Error for a place in src.
func errorAt(src string, at file.Location, format string, args ...any) *Error {
	e := &Error{Source: src, Line: 1, Column: 1, Msg: fmt.Sprintf(format, args...)}
	for i, r := range []rune(src) {
		if i >= at.From {
			break
		}
		e.Column++
		if r == '\n' {
			e.Line++
			e.Column = 1
		}
	}
	return e
}

// foreign turns an error of expr-lang into one of ours.
func foreign(src string, err error) *Error {
	if fe, ok := errors.AsType[*file.Error](err); ok {
		e := &Error{Source: src, Line: fe.Line, Column: fe.Column + 1, Msg: fe.Message}
		if fe.Line == 0 {
			e = errorAt(src, fe.Location, "%s", fe.Message)
		}
		if strings.HasPrefix(e.Msg, "unexpected token") {
			e.Msg += advice(src, e)
		}
		if name, ok := strings.CutPrefix(e.Msg, "unknown name "); ok && foreignNames[name] != "" {
			e.Msg += "; " + foreignNames[name]
		}
		return e
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return &Error{Source: src, Msg: msg}
}

// foreignOperators are those of languages that users know, and what to write
// instead.
var foreignOperators = []struct{ operator, instead string }{
	{"=~", `use matches for a regular expression: name matches "^go_"`},
	{"!~", `use matches for a regular expression: not (name matches "^go_")`},
	{"===", "write =="},
	{"=>", "write >="},
	{"=", "use == to compare values"},
	{"AND", "write and, or &&"},
	{"OR", "write or, or ||"},
	{"<>", "write !="},
	{"startswith", "write startsWith"},
	{"endswith", "write endsWith"},
	{"like ", "use contains, startsWith, endsWith or matches"},
	{"LIKE ", "use contains, startsWith, endsWith or matches"},
}

// foreignNames are names that users know from PromQL, and what to write instead.
var foreignNames = map[string]string{
	"__name__": "the name of the metric is name",
	"job":      "write labels.job",
	"instance": "write labels.instance",
}

// advice says what to write instead of a token that was not expected.
func advice(src string, e *Error) string {
	lines := strings.Split(src, "\n")
	if e.Line > len(lines) {
		return ""
	}
	line := []rune(lines[e.Line-1])
	at := min(e.Column-1, len(line))
	if at >= 2 && string(line[at-2:at]) == "==" { // of ===, the third one is too much
		at -= 2
	}
	if at >= 1 && at < len(line) && string(line[at-1:at+1]) == "<>" { // the parser accepts the < of it
		at--
	}
	for _, o := range foreignOperators {
		if strings.HasPrefix(string(line[at:]), o.operator) {
			return "; " + o.instead
		}
	}
	return ""
}
