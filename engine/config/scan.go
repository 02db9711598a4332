package config

import (
	"fmt"
	"strings"

	"github.com/grafana/alloy/syntax/scanner"
	"github.com/grafana/alloy/syntax/token"
)

// The parser and the evaluator recurse once per bracket and once per element of
// a chain such as a.b.c or 1 + 1 + 1. A stack overflow cannot be recovered, so
// both are limited before anything is parsed.
const (
	maxDepth = 100
	maxChain = 5000 // operators in one expression, including all enclosing brackets
)

// statement is the position of a top-level statement, even if it does not
// parse.
type statement struct {
	id            string // of a block: name or name.label; of an attribute: its name
	start, end    int    // byte offsets
	line, endLine int
	header        Span // of its name and label
	unclosed      bool // another block seems to begin inside it
}

type lexeme struct {
	pos token.Pos
	tok token.Token
	lit string
}

func lex(f *token.File, text string) (ls []lexeme) {
	s := scanner.New(f, []byte(text), nil, 0)
	ls = make([]lexeme, 0, len(text)/6) // of a usual config
	for {
		pos, tok, lit := s.Scan()
		ls = append(ls, lexeme{pos, tok, lit})
		if tok == token.EOF {
			return ls
		}
	}
}

// header returns the number of lexemes in a block's name and label. It returns
// 0 if the lexemes do not begin a block.
func header(ls []lexeme) int {
	i := 0
	for ls[i].tok == token.IDENT {
		i++
		if ls[i].tok != token.DOT {
			break
		}
		i++
	}
	if ls[i].tok == token.STRING {
		i++
	}
	if i == 0 || ls[i].tok != token.LCURLY {
		return 0
	}
	return i
}

// scan returns the top-level statements of a file, which it finds by brackets
// alone, and an error if the file is nested too deeply to be parsed.
func scan(name, text string) (stmts []statement, ds Diagnostics) {
	f := token.NewFile(name)
	ls := lex(f, text)
	var (
		cur     *statement
		base    int // the depth of the top level; more than 0 inside an unclosed block
		closers []token.Token
		chains  = []int{0}
		total   int
	)
	finish := func(end token.Pos) {
		if cur != nil {
			cur.end = end.Offset()
			cur.endLine = max(cur.line, end.Position().Line)
			stmts = append(stmts, *cur)
			cur = nil
		}
	}
	for i, l := range ls {
		if l.tok == token.EOF {
			finish(f.Pos(len(text)))
			break
		}
		at := l.pos.Offset()
		first := at == 0 || text[at-1] == '\n' // in its line
		n := 0
		if l.tok == token.IDENT && (first || cur == nil) {
			n = header(ls[i:])
		}
		// In formatted files, only top-level statements are at column 1. If a block
		// is still open there, its closing bracket is missing.
		if cur != nil && n > 1 && first && len(closers) > base {
			cur.unclosed = true
			base = len(closers)
			finish(l.pos)
		}
		if cur == nil && l.tok != token.TERMINATOR {
			cur = &statement{start: at, line: l.pos.Position().Line, id: l.lit, header: newSpan(l.pos, l.pos.Add(len(l.lit)-1))}
			if n > 0 {
				var parts []string
				for _, h := range ls[i : i+n] {
					if h.tok != token.DOT && h.lit != `""` {
						parts = append(parts, strings.Trim(h.lit, `"`))
					}
				}
				last := ls[i+n-1]
				cur.id = strings.Join(parts, ".")
				cur.header = newSpan(l.pos, last.pos.Add(len(last.lit)-1))
			}
		}
		switch l.tok {
		case token.LCURLY:
			closers = append(closers, token.RCURLY)
		case token.LBRACK:
			closers = append(closers, token.RBRACK)
		case token.LPAREN:
			closers = append(closers, token.RPAREN)
		case token.RCURLY, token.RBRACK, token.RPAREN:
			// The parser ignores an unmatched closing bracket and keeps its depth.
			if n := len(closers); n > 0 && closers[n-1] == l.tok {
				closers = closers[:n-1]
				base = min(base, n-1)
			}
		case token.TERMINATOR, token.COMMA:
			total -= chains[len(chains)-1]
			chains[len(chains)-1] = 0
			if l.tok == token.TERMINATOR && len(closers) <= base {
				finish(l.pos)
			}
		case token.IDENT, token.NUMBER, token.FLOAT, token.STRING, token.BOOL, token.NULL:
		default: // operators and the dot
			chains[len(chains)-1]++
			total++
		}
		switch {
		case len(closers) >= len(chains):
			chains[len(chains)-1]++ // an index or a call counts as an element too
			total++
			chains = append(chains, 0)
		case len(closers) < len(chains)-1:
			total -= chains[len(chains)-1]
			chains = chains[:len(chains)-1]
		}
		if len(closers) > maxDepth {
			ds.add(newSpan(l.pos, l.pos), fmt.Sprintf("brackets nest deeper than the %d levels allowed", maxDepth), "")
			return nil, ds
		}
		if total > maxChain {
			ds.add(newSpan(l.pos, l.pos), fmt.Sprintf("expression has more than the %d operators allowed", maxChain), "")
			return nil, ds
		}
	}
	if len(closers) == 0 {
		for i := range stmts {
			stmts[i].unclosed = false
		}
	}
	return stmts, nil
}
