package js

import (
	"fmt"
	"strings"
)

const (
	// maxNesting is how deep brackets in a file may nest: parsers and compilers
	// call themselves for each, and a stack overflow ends the process.
	maxNesting = 1000
	// maxChain is how many operators, calls and words may follow each other
	// without the end of a statement, which nest as well. Parsers survive ten
	// times as many, but take seconds.
	maxChain = 10_000
)

// checkNesting looks at a text before any parser does. It counts what nests
// wherever it stands, in strings as well, so that no clever text hides it; only
// lines of // are left out, which are long without being deep. line is where
// there is too much.
func checkNesting(text string) (line int, err error) {
	n := nesting{}
	for l := range strings.Lines(text) {
		line++
		if strings.HasPrefix(strings.TrimSpace(l), "//") && !strings.ContainsAny(l, "`$") {
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

type nesting struct {
	open    []int // what chain was before each bracket that is open
	chain   int   // since a statement may have begun
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
		case ' ', '\t', '\n':
			if i > 0 && 'a' <= l[i-1] && l[i-1] <= 'z' {
				n.chain++ // typeof typeof x, new new x, do do
			}
		}
		n.longest = max(n.longest, n.chain)
	}
}
