package selector

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	end    kind = iota
	name        // a word
	text        // a string, with its quotes
	sign        // an operator or a bracket
	broken      // invalid in any selector
)

// token is a part of the source.
type token struct {
	kind kind
	s    string
	at   int // in bytes
}

// scanner splits the source into tokens by the rules of Go. # also begins a
// comment.
type scanner struct {
	src string
	pos int
}

// signs are the operators of several bytes.
var signs = []string{"!=", "!~", "!>", "=~", "|=", "|~", "|>"}

// next returns the next token. If it is invalid, its kind is broken and msg is
// the error.
func (s *scanner) next() (t token, msg string) {
	if msg := s.skip(); msg != "" {
		return token{broken, "", s.pos}, msg
	}
	t.at = s.pos
	if s.pos == len(s.src) {
		return t, ""
	}
	rest := s.src[s.pos:]
	switch r, size := utf8.DecodeRuneInString(rest); {
	case r == '"' || r == '`':
		n := closing(rest)
		if n < 0 {
			t.kind = broken
			return t, "the string does not end"
		}
		t.kind, t.s = text, rest[:n]
	case r == '_' || unicode.IsLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		t.kind, t.s = name, rest[:n]
	default:
		t.kind, t.s = sign, rest[:size]
		for _, two := range signs {
			if strings.HasPrefix(rest, two) {
				t.s = two
			}
		}
	}
	s.pos += len(t.s)
	return t, ""
}

// skip skips white space and comments: # and // to the end of the line, /* to */.
func (s *scanner) skip() (msg string) {
	for s.pos < len(s.src) {
		rest := s.src[s.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			s.pos++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			s.pos += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return "the comment does not end"
			}
			s.pos += 2 + n + 2
		default:
			return ""
		}
	}
	return ""
}

// closing returns the length of the string at the beginning of s, or -1 if it
// does not end. A string in double quotes must be in one line.
func closing(s string) int {
	if s[0] == '`' {
		if n := strings.IndexByte(s[1:], '`'); n >= 0 {
			return n + 2
		}
		return -1
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n':
			return -1
		case '"':
			return i + 1
		}
	}
	return -1
}
