package js

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

const (
	// maxNesting is the maximum nesting of brackets in a file: parsers and
	// compilers recurse for each, and a stack overflow ends the process.
	maxNesting = 1000
	// maxChain is the maximum number of consecutive operators, calls and words in
	// a statement, which nest as well. Parsers survive ten times as many, but take
	// seconds.
	maxChain = 10_000
)

// checkNesting checks a text before any parser reads it. It counts all
// brackets, including those in strings and patterns, because where these end
// depends on the whole text before them, which could be crafted to hide
// brackets. Only // comments are ignored, because they can be long without
// being deep, unless they contain something that could end a comment, a string
// or a template that began in a line above. line is where the limit is
// exceeded.
func checkNesting(text string) (line int, err error) {
	n := nesting{}
	for l := range lines(text) {
		line++
		if strings.HasPrefix(strings.TrimSpace(l), "//") && !strings.ContainsAny(l, "`$'\"") && !strings.Contains(l, "*/") {
			continue
		}
		if n.line(l); len(n.open) > maxNesting {
			return line, fmt.Errorf("cannot use a file that nests deeper than %d brackets", maxNesting)
		}
		if n.longest > maxChain {
			return line, fmt.Errorf("cannot use a file with more than %d operators, elements or words in one statement: take it apart, or move data into a .json", maxChain)
		}
	}
	return 0, nil
}

// lines returns the lines of a text with their line terminators. JavaScript has
// four of them.
//
// Source: https://tc39.es/ecma262/#sec-line-terminators
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			i := strings.IndexAny(text, "\n\r\u2028\u2029")
			end := len(text)
			switch {
			case i < 0:
			case strings.HasPrefix(text[i:], "\r\n"):
				end = i + 2
			default:
				_, size := utf8.DecodeRuneInString(text[i:])
				end = i + size
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

type nesting struct {
	open    []int // the value of chain before each open bracket
	chain   int   // since the last position at which a statement may have begun
	longest int
}

func (n *nesting) line(l string) {
	for i := range len(l) {
		switch c := l[i]; c {
		case '(', '[', '{':
			if len(n.open) <= maxNesting {
				n.open = append(n.open, n.chain)
			}
			if len(n.open) > maxNesting {
				return
			}
			n.chain = 0
		case ')', ']', '}':
			if last := len(n.open) - 1; last >= 0 {
				n.chain = n.open[last] + 1
				n.open = n.open[:last]
			}
			if c == '}' {
				n.chain = 0
			}
		case ';':
			n.chain = 0
		case '!', '~', '+', '-', '*', '/', '%', '&', '|', '^', '=', '<', '>', '?', ':', '.', ',', '`':
			n.chain++
		case ' ', '\t', '\n', '\r', '\v', '\f', 0xc2, 0xe2, 0xe3, 0xef: // the last four are first bytes of other blanks
			if i > 0 && 'a' <= l[i-1] && l[i-1] <= 'z' {
				n.chain++ // typeof typeof x, new new x, do do
			}
		}
		n.longest = max(n.longest, n.chain)
	}
}
