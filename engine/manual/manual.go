// Package manual lays out the manuals that are printed from tables. It knows
// nothing about what they describe.
package manual

import (
	"strings"
	"unicode/utf8"
)

// Width is how many columns a line of a manual has at most.
const Width = 82

// WriteParagraph writes the words of text, separated by single spaces, in lines of
// at most Width columns that begin with indent. A word that is longer has a line of
// its own. The last line ends with a line feed; a text without words is one empty
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
