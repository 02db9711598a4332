package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"
)

// Error is an error in an expression, or a failure on a sample.
type Error struct {
	Source string // the whole expression
	Line   int    // starts at 1; 0 if unknown
	Column int    // starts at 1, in runes
	Msg    string

	// other means that it reads a name that only the other signal has.
	other bool
	// failure means that it occurred during evaluation.
	failure bool
}

// Error returns the message with its position, the line with a caret under it,
// and for an error in the expression, where the language is described.
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

// Snippet returns the line of the error and a caret line, each after a line
// break. It returns "" if the position is unknown.
func (e *Error) Snippet() string {
	if e.Line == 0 {
		return ""
	}
	lines := strings.Split(e.Source, "\n")
	if e.Line > len(lines) {
		return ""
	}
	// A tab counts as one column, so that the caret is at the right position.
	line := strings.ReplaceAll(strings.TrimSuffix(lines[e.Line-1], "\r"), "\t", " ")
	return "\n | " + line + "\n | " + strings.Repeat(" ", e.Column-1) + "^"
}

// errorAt returns an Error for a position in src.
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

// foreign converts an error of expr-lang to an Error.
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

// foreignOperators are operators of other languages, and their replacements.
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

// foreignNames are names from PromQL, and their replacements.
var foreignNames = map[string]string{
	"__name__": "the name of the metric is name",
	"job":      "write labels.job",
	"instance": "write labels.instance",
}

// advice returns a hint for an unexpected token.
func advice(src string, e *Error) string {
	lines := strings.Split(src, "\n")
	if e.Line > len(lines) {
		return ""
	}
	line := []rune(lines[e.Line-1])
	at := min(e.Column-1, len(line))
	if at >= 2 && string(line[at-2:at]) == "==" { // of ===, the third one is superfluous
		at -= 2
	}
	if at >= 1 && at < len(line) && string(line[at-1:at+1]) == "<>" { // the parser has accepted its <
		at--
	}
	for _, o := range foreignOperators {
		if strings.HasPrefix(string(line[at:]), o.operator) {
			return "; " + o.instead
		}
	}
	return ""
}
