package lua

import (
	"fmt"
	"strings"

	"github.com/yuin/gopher-lua/parse"
)

// maxNesting is how deep brackets and blocks may nest, as in Lua itself. The
// compiler recurses, and a Go stack that overflows ends the process.
const maxNesting = 200

// maxRun is how many operators may follow each other in an expression; each
// makes the tree one level deeper. Statements without keyword or assignment
// count as one expression, hence the room.
const maxRun = 50_000

var errNesting = fmt.Errorf("cannot use a file that nests deeper than %d levels", maxNesting)

// checkNesting looks at the tokens of a file before anything recursive does. They
// are those of the parser's own scanner, so that both agree where a comment and
// a string end. The parser reports tokens that the scanner refuses.
func checkNesting(text string) (line int, err error) {
	depth, run := 0, 0
	sc := parse.NewScanner(strings.NewReader(text), "")
	lexer := &parse.Lexer{}
	for {
		tok, err := sc.Scan(lexer)
		if err != nil || tok.Type == parse.EOF {
			return 0, nil
		}
		switch tok.Type {
		case '(', '[', '{':
			depth++
			run++
		case ')', ']', '}':
			depth--
		case parse.TFunction, parse.TDo, parse.TThen, parse.TRepeat:
			depth++
			run = 0
		case parse.TEnd, parse.TUntil, parse.TElseIf: // then of the elseif comes again
			depth--
			run = 0
		case parse.TLocal, parse.TReturn, parse.TIf, parse.TWhile, parse.TFor, parse.TElse, parse.TIn, parse.TBreak, parse.TGoto, ';', '=':
			run = 0
		case ',':
			if depth > 0 {
				run = 0
			}
		case parse.TIdent, parse.TNumber, parse.TNil, parse.TTrue, parse.TFalse:
		default: // an operator, or a text, which calls what is before it
			run++
		}
		if depth > maxNesting || run > maxRun {
			return tok.Pos.Line, errNesting
		}
	}
}
