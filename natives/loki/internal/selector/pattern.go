package selector

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// blank matches the wildcard of a pattern. A named wildcard would extract the
// text, which a filter cannot do.
var blank = regexp.MustCompile(`<[A-Za-z_][A-Za-z0-9_]*>`)

// newPattern returns a function that reports whether a line matches a pattern.
// The texts of the pattern must occur in order, each at the first position after
// the previous text, with at least one character for each <_> and nothing between
// texts without one. As in Loki, any text may precede a text at the beginning of
// the pattern. The empty pattern matches the empty line.
func newPattern(src string) (func(line string) bool, error) {
	if !utf8.ValidString(src) {
		return nil, errors.New("a pattern is UTF-8 text")
	}
	at := blank.FindAllStringIndex(src, -1)
	var texts []string // the texts between wildcards; the first and the last may be empty
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
			if t == "" { // the pattern begins or ends with a wildcard
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
