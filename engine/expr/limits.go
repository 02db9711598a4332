package expr

import "unicode/utf8"

const (
	maxSource  = 8 << 10
	maxNesting = 100
	maxRange   = 1024    // elements of a..b
	maxText    = 1 << 16 // bytes that replace may return
)

// checkSource refuses a source that would overflow the parser's stack: it
// recurses, and a Go stack overflow cannot be recovered. Both limits are far
// below that.
func checkSource(src string) *Error {
	if len(src) > maxSource {
		return &Error{Source: src, Msg: "it is longer than 8 KiB"}
	}
	if !utf8.ValidString(src) {
		return &Error{Source: src, Msg: "it is not valid UTF-8"}
	}
	line, col, depth := 1, 0, 0
	rs := []rune(src)
	for i := 0; i < len(rs); i++ {
		col++
		switch r := rs[i]; r {
		case '\n':
			line, col = line+1, 0
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return &Error{Source: src, Line: line, Column: col, Msg: "brackets are nested more than 100 deep"}
			}
		case ')', ']', '}':
			depth--
		case '"', '\'', '`':
			for i++; i < len(rs) && rs[i] != r; i++ {
				col++
				if rs[i] == '\n' {
					line, col = line+1, 0
				}
				if rs[i] == '\\' && r != '`' {
					i, col = i+1, col+1
				}
			}
			col++
		}
	}
	return nil
}
