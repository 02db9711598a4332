package selector

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is an error in a selector.
type Error struct {
	Source string // the whole selector
	Offset int    // position of the error, in bytes
	Msg    string
}

// Error returns the message with its position, and the line with a caret below
// it.
func (e *Error) Error() string {
	if e.Source == "" {
		return "cannot use selector: " + e.Msg
	}
	return "cannot use selector: " + e.Msg + Place(e.Source, e.Offset)
}

// Place describes the position of an offset in bytes, for the end of a message:
// line and column, and the line with a caret below it.
func Place(src string, offset int) string {
	before := src[:min(offset, len(src))]
	begin := strings.LastIndexByte(before, '\n') + 1
	line, _, _ := strings.Cut(src[begin:], "\n")
	column := utf8.RuneCountInString(before[begin:])
	// A tab becomes one column, so that the caret is below its position.
	line = strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", " ")
	return fmt.Sprintf(" (%d:%d)\n | %s\n | %s^",
		strings.Count(before, "\n")+1, column+1, line, strings.Repeat(" ", column))
}
