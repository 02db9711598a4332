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

// ErrLimit is wrapped by the Error of a script that exceeded a limit: time,
// instructions, memory, depth. The VM is discarded.
var ErrLimit = errors.New("limit exceeded")

// ErrTime is an ErrLimit: the call exceeded its time limit.
var ErrTime error = timeError{}

type timeError struct{}

func (timeError) Error() string { return ErrLimit.Error() }

// Unwrap returns ErrLimit.
func (timeError) Unwrap() error { return ErrLimit }

// Error is an error in a script with its position. It is not changed after it
// was returned.
type Error struct {
	Node   string // the node that failed: http.paths.default; "" outside of a graph
	Script string // the component: http.paths
	File   string // as shown to people: scripts/http/paths.lua
	Line   int    // starts at 1; 0 if unknown
	Col    int    // starts at 1, of an expr or a syntax error; 0 if unknown
	Source string // the source line, trimmed
	Hook   string // series, metrics, each…; load while the file is loaded
	Record string // the current record in text form, or ""
	Trace  []Frame
	Hint   string // what to do, if the message does not say it
	Err    error
	ID     string // of a finding of weir check, or ""

	indent int // number of bytes that were trimmed from the beginning of Source
}

// Frame is one line of a script's stack.
type Frame struct {
	File string
	Line int
	Func string
}

// Pos returns file:line:col, or its known parts.
func (e *Error) Pos() string {
	switch {
	case e.Line == 0:
		return e.File
	case e.Col == 0:
		return fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Col)
}

// Error returns position, hook, message and identifier. On separate lines follow the source
// line, with a caret if the column is known, the record, the script's stack if
// it has more than one line, and the hint.
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
	if e.ID != "" {
		fmt.Fprintf(&b, " [%s]", e.ID)
	}
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

// Stack returns the script's stack in one line, innermost frame first.
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

// spaces returns spaces with the same width as s on a terminal.
func spaces(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, s)
}

// shortError is an error with a shortened message, or with hidden parts.
type shortError struct {
	error
	text string
}

func (e *shortError) Error() string { return e.text }

func (e *shortError) Unwrap() error { return e.error }

// Shorten shortens long texts and hides possible secrets in URLs. Only the
// creator of e may call it.
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

// MarshalJSON returns the error as an object with its parts, the message, and
// the full text.
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
		ID      string  `json:"id,omitempty"`
		Record  string  `json:"record,omitempty"`
		Stack   []frame `json:"stack,omitempty"`
		Hint    string  `json:"hint,omitempty"`
		Text    string  `json:"text"`
	}{e.Node, e.Script, e.File, e.Line, e.Col, e.Source, e.Hook, fmt.Sprint(e.Err), e.ID, e.Record, stack, e.Hint, e.Error()})
}

// HookLoad is the Hook of errors that occur while a file is loaded.
const HookLoad = "load"

// SourceLine returns line n of text, starting at 1, trimmed and shortened to
// fit a terminal. It returns "" if there is no such line.
func SourceLine(text string, n int) string {
	line, _ := sourceLine(text, n)
	return line
}

// sourceLine is like SourceLine, and also returns the number of bytes trimmed
// from the beginning.
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
