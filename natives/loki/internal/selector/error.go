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
	return "cannot use selector: " + e.Msg + Place(e.Source, e.Offset)
}

// Place says where an offset in bytes is, for the end of a message: line and
// column, the line and a caret under it.
func Place(src string, offset int) string {
	before := src[:min(offset, len(src))]
	begin := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(src[begin:], "\n")
	column := utf8.RuneCountInString(before[begin:])
	// A tab takes one column, so that the caret is under its place.
	line = strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", " ")
	return fmt.Sprintf(" (%d:%d)\n | %s\n | %s^",
		strings.Count(before, "\n")+1, column+1, line, strings.Repeat(" ", column))
}
