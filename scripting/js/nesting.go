package js

import "fmt"

// maxNesting is how deep a file may nest, and how long a chain of operators
// without brackets may be: parsers and compilers call themselves for each, and
// a stack overflow ends the process.
const maxNesting = 1000

// checkNesting looks at a text before any parser does. It counts brackets, and
// operators since the last place where an expression must have ended, wherever
// they stand: in strings and comments as well, so that no clever text hides
// them. line is where there are too many.
func checkNesting(text string) (line int, err error) {
	depth, chain := 0, 0
	line = 1
	chains := []int{0} // of the brackets that are open
	for i := range len(text) {
		switch c := text[i]; c {
		case '\n':
			line++
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return line, fmt.Errorf("cannot use a file that nests deeper than %d brackets", maxNesting)
			}
			chains = append(chains, chain)
			if c == '{' {
				chain = 0
			}
		case ')', ']', '}':
			if depth > 0 {
				depth--
				chain = chains[len(chains)-1]
				chains = chains[:len(chains)-1]
			}
			if c == '}' {
				chain = 0
			}
		case ';', ',':
			chain = 0
		case '!', '~', '+', '-', '*', '/', '%', '&', '|', '^', '=', '<', '>', '?', ':', '.', '`', ' ', '\t':
			if c != ' ' && c != '\t' {
				chain++
			} else if i > 0 && isWord(text[i-1]) {
				chain++ // typeof typeof x, new new x, else if
			}
			if chain > maxChain {
				return line, fmt.Errorf("cannot use a file with an expression of more than %d operators: take it apart", maxChain)
			}
		}
	}
	return 0, nil
}

// maxChain is larger than maxNesting: a comment is a chain of words, too.
const maxChain = 20_000

func isWord(c byte) bool { return 'a' <= c && c <= 'z' }
