package scripting

import (
	"context"
	"errors"
	"strings"

	"github.com/weir-run/weir/engine/view"
)

// Prompter is a VM that evaluates statements that a person types. It keeps the
// variables that they declare. They can also read the variables of the component's
// file.
type Prompter interface {
	VM
	// Eval evaluates a statement, which is a call between Begin and End. It returns the
	// value of an expression as text for people, or "" if there is none. The error wraps
	// ErrIncomplete if the text ends inside of a statement; otherwise it is an *Error,
	// which wraps context.Canceled if ctx ended the statement.
	Eval(ctx context.Context, s *Statement) (shown string, err error)
	// Complete returns the words that can stand at the end of text instead of the part
	// of a word that is there, sorted: names, or members of a value. It is a call as
	// well, and runs no code of the statement.
	Complete(s *Statement) []string
}

// Statement is a text that a person types at a prompt.
type Statement struct {
	File File
	// Metrics or Logs is the batch that the variable batch stands for; both may be nil.
	// It is the same one for all statements, and its records stay valid between them.
	Metrics *view.Metrics
	Logs    *view.Logs
}

// ErrIncomplete is wrapped by the error of a statement that needs more text.
var ErrIncomplete = errors.New("the statement is incomplete")

// Limits for what a prompt shows of a value.
const (
	// MaxShownItems is the maximum number of items of a list or a table, and
	// MaxShownRows that of the records of a batch.
	MaxShownItems = 50
	MaxShownRows  = 10
	// MaxShownDepth is the maximum depth of nested values.
	MaxShownDepth = 5
	// MaxShownBytes is the maximum length of the text for a value.
	MaxShownBytes = 16 << 10
)

// WordsAt returns the path of names at the end of a text, which separators are between,
// and the part of a word after the last separator. If the text before them is not a name,
// the path begins with "".
func WordsAt(text, separators string) (path []string, typed string) {
	at := len(text)
	for at > 0 && (isNameByte(text[at-1]) || strings.IndexByte(separators, text[at-1]) >= 0) {
		at--
	}
	words := []string{""}
	for _, c := range []byte(text[at:]) {
		if strings.IndexByte(separators, c) >= 0 {
			words = append(words, "")
		} else {
			words[len(words)-1] += string(rune(c))
		}
	}
	return words[:len(words)-1], words[len(words)-1]
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// ShownRows returns the text of the rows of a batch that are left, at most as many as
// limit, and how many are left out.
func (s *Statement) ShownRows(limit int) (rows []string, more int) {
	var w *view.Window
	var text func(row int) string
	switch {
	case s.Metrics != nil:
		w, text = &s.Metrics.Window, s.Metrics.RowText
	case s.Logs != nil:
		w, text = &s.Logs.Window, func(row int) string { return strings.TrimSuffix(string(s.Logs.Text(nil, row)), "\n") }
	default:
		return nil, 0
	}
	for i := w.Next(0); i >= 0; i = w.Next(i + 1) {
		if len(rows) == limit {
			more++
			continue
		}
		rows = append(rows, text(i))
	}
	return rows, more
}
