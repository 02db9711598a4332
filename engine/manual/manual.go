// Package manual formats manuals that are generated from tables. It knows
// nothing about their content.
package manual

import (
	"strings"
	"unicode/utf8"
)

// Width is the maximum number of columns of a line in a manual.
const Width = 82

// WriteParagraph writes the words of text, separated by single spaces, in lines
// of at most Width columns that begin with indent. A longer word has its own
// line. The last line ends with a line feed. A text without words is one empty
// line.
func WriteParagraph(b *strings.Builder, indent, text string) {
	col := 0
	for _, w := range strings.Fields(text) {
		n := utf8.RuneCountInString(w)
		if col > 0 && col+1+n <= Width {
			b.WriteByte(' ')
			col++
		} else {
			if col > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(indent)
			col = utf8.RuneCountInString(indent)
		}
		b.WriteString(w)
		col += n
	}
	b.WriteByte('\n')
}
