package selector

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// blank is what stands for any text in a pattern. One with a name would take
// the text out, which a filter cannot.
var blank = regexp.MustCompile(`<[A-Za-z_][A-Za-z0-9_]*>`)

// newPattern returns what reports whether a line is as a pattern says: texts in
// their order, each at its first place after the one before, with something
// where there is a <_> and nothing where there is none. Before a text that the
// pattern begins with there may be anything, as in Loki. The empty pattern is
// the empty line.
func newPattern(src string) (func(line string) bool, error) {
	if !utf8.ValidString(src) {
		return nil, errors.New("a pattern is UTF-8 text")
	}
	at := blank.FindAllStringIndex(src, -1)
	var texts []string // between the blanks; the first and the last may be empty
	from := 0
	for i, b := range at {
		if src[b[0]:b[1]] != "<_>" {
			return nil, fmt.Errorf("%s in a pattern takes something out of the line, which a filter cannot: write <_>", src[b[0]:b[1]])
		}
		if i > 0 && b[0] == from {
			return nil, errors.New("between two <_> of a pattern there must be some text")
		}
		texts = append(texts, src[from:b[0]])
		from = b[1]
	}
	texts = append(texts, src[from:])
	if src == "" {
		return func(line string) bool { return line == "" }, nil
	}
	last := len(texts) - 1
	return func(line string) bool {
		rest := line
		for i, t := range texts {
			if t == "" { // the pattern begins or ends with a blank
				continue
			}
			n := strings.Index(rest, t)
			if n < 0 || n == 0 && i > 0 {
				return false
			}
			rest = rest[n+len(t):]
		}
		return line != "" && (rest != "") == (texts[last] == "")
	}, nil
}
