package selector

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is a mistake in a selector.
type Error struct {
	Source string // the whole selector
	Offset int    // of the mistake, in bytes
	Msg    string
}

// Error returns the message with its place, and the line with a caret under it.
func (e *Error) Error() string {
	if e.Source == "" {
		return "cannot use selector: " + e.Msg
	}
	before := e.Source[:min(e.Offset, len(e.Source))]
	begin := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(e.Source[begin:], "\n")
	column := utf8.RuneCountInString(before[begin:])
	// A tab takes one column, so that the caret is under its place.
	line = strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", " ")
	return fmt.Sprintf("cannot use selector: %s (%d:%d)\n | %s\n | %s^",
		e.Msg, strings.Count(before, "\n")+1, column+1, line, strings.Repeat(" ", column))
}
