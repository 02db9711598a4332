package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-run/weir/engine/component"
)

// ErrLimit is what an Error wraps when a limit stopped the script: time,
// instructions, memory of strings, depth. The VM it ran on is thrown away.
var ErrLimit = errors.New("limit exceeded")

// ErrTime is an ErrLimit: the call took longer than it may.
var ErrTime error = timeError{}

type timeError struct{}

func (timeError) Error() string { return ErrLimit.Error() }

// Unwrap returns ErrLimit.
func (timeError) Unwrap() error { return ErrLimit }

// Error is what went wrong in a script and where. It is made once and not
// changed after it was returned.
type Error struct {
	Node   string // that failed: http.paths.default; "" outside of a graph
	Script string // the component: http.paths
	File   string // as shown to people: scripts/http/paths.lua
	Line   int    // 1-based; 0 when it is not known
	Col    int    // 1-based, of an expr or a syntax error; 0 when it is not known
	Source string // the source line, trimmed
	Hook   string // series, metrics, each…; load while the file is read
	Record string // the record at hand in text form, "" when there is none
	Trace  []Frame
	Hint   string // what to do about it, when there is something better than the message
	Err    error

	indent int // what was trimmed from the beginning of Source, in bytes
}

// Frame is one line of a script's stack, innermost first.
type Frame struct {
	File string
	Line int
	Func string
}

// Pos returns file:line:col as far as they are known.
func (e *Error) Pos() string {
	switch {
	case e.Line == 0:
		return e.File
	case e.Col == 0:
		return fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Col)
}

// Error returns position, hook and message, and on lines of their own the
// source line, with a caret where the column is known, the record, the script's
// stack where it is more than that line, and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	if p := e.Pos(); p != "" {
		b.WriteString(p)
		b.WriteString(": ")
	}
	if e.Hook != "" && e.Hook != HookLoad {
		fmt.Fprintf(&b, "in %s: ", e.Hook)
	}
	fmt.Fprintf(&b, "%v", e.Err)
	if e.Source != "" {
		line := strconv.Itoa(e.Line)
		fmt.Fprintf(&b, "\n  %s | %s", line, e.Source)
		if at := e.Col - 1 - e.indent; e.Col > 0 && at >= 0 && at <= len(e.Source) {
			fmt.Fprintf(&b, "\n  %*s | %s^", len(line), "", spaces(e.Source[:at]))
		}
	}
	if e.Record != "" {
		fmt.Fprintf(&b, "\n  record: %s", e.Record)
	}
	if stack := e.Stack(); strings.Contains(stack, " < ") {
		fmt.Fprintf(&b, "\n  stack: %s", stack)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n  hint: %s", e.Hint)
	}
	return b.String()
}

// Stack is the script's stack in one line, innermost first.
func (e *Error) Stack() string {
	var b strings.Builder
	for i, f := range e.Trace {
		if i > 0 && f.File == e.Trace[i-1].File && f.Line == e.Trace[i-1].Line {
			continue // a callback in the line of its call
		}
		if i > 0 {
			b.WriteString(" < ")
		}
		fmt.Fprintf(&b, "%s:%d", f.File, f.Line)
	}
	return b.String()
}

// spaces is as wide as s on a terminal.
func spaces(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, s)
}

// shortError is an error with a message that is cut, or in which something is
// hidden.
type shortError struct {
	error
	text string
}

func (e *shortError) Error() string { return e.text }

func (e *shortError) Unwrap() error { return e.error }

// Shorten cuts what is longer than anyone reads, and hides what may be secret in
// URLs. Only who made e may call it.
func (e *Error) Shorten() {
	e.Record = component.Shorten(e.Record)
	if e.Err != nil {
		text := e.Err.Error()
		if short := component.Shorten(component.HideURLs(text)); short != text {
			e.Err = &shortError{e.Err, short}
		}
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MarshalJSON returns the error as an object: its parts, the message alone, and
// all of it as text.
func (e *Error) MarshalJSON() ([]byte, error) {
	type frame struct {
		File string `json:"file"`
		Line int    `json:"line"`
		Func string `json:"func,omitempty"`
	}
	var stack []frame
	for _, f := range e.Trace {
		stack = append(stack, frame(f))
	}
	return json.Marshal(struct {
		Node    string  `json:"node,omitempty"`
		Script  string  `json:"script,omitempty"`
		File    string  `json:"file,omitempty"`
		Line    int     `json:"line,omitempty"`
		Col     int     `json:"col,omitempty"`
		Source  string  `json:"source,omitempty"`
		Hook    string  `json:"hook,omitempty"`
		Message string  `json:"message"`
		Record  string  `json:"record,omitempty"`
		Stack   []frame `json:"stack,omitempty"`
		Hint    string  `json:"hint,omitempty"`
		Text    string  `json:"text"`
	}{e.Node, e.Script, e.File, e.Line, e.Col, e.Source, e.Hook, fmt.Sprint(e.Err), e.Record, stack, e.Hint, e.Error()})
}

// HookLoad is the Hook of errors that have happened while a file was loaded.
const HookLoad = "load"

// SourceLine returns line n of text, 1-based, trimmed and cut to what fits a
// terminal; "" when there is none.
func SourceLine(text string, n int) string {
	line, _ := sourceLine(text, n)
	return line
}

// sourceLine is SourceLine, and how many bytes were trimmed before it.
func sourceLine(text string, n int) (line string, indent int) {
	for i := 1; i < n; i++ {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return "", 0
		}
		text = rest
	}
	if n < 1 {
		return "", 0
	}
	whole, _, _ := strings.Cut(text, "\n")
	line = strings.TrimLeftFunc(whole, unicode.IsSpace)
	indent = len(whole) - len(line)
	line = strings.TrimSpace(line)
	if len(line) > 160 {
		line = strings.ToValidUTF8(line[:157], "") + "…"
	}
	return line, indent
}
