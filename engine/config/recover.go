package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/scanner"
	"github.com/grafana/alloy/syntax/token"
)

// The parser cannot recover after its first error: it reports consequential
// errors and misses later ones. This file repairs the text instead, one error
// after another, and reports only the repairs.

const (
	maxRepaired = 32 << 10 // bytes of a text to repair: each attempt parses it
	maxRepairs  = 20       // per text
)

// repaired is a text with insertions and their positions.
type repaired struct {
	text    string
	inserts []insert // sorted by position
}

// insert is text that was inserted before an offset of the original.
type insert struct {
	at   int
	text string
}

// original converts an offset in the text to an offset in the original.
func (r *repaired) original(at int) int {
	shift := 0
	for _, in := range r.inserts {
		switch {
		case at >= in.at+shift+len(in.text):
			shift += len(in.text)
		case at > in.at+shift:
			return in.at
		}
	}
	return at - shift
}

// originals converts the positions of diagnostics from the text to the
// original.
func (r *repaired) originals(ds Diagnostics, original string) Diagnostics {
	if len(r.inserts) == 0 {
		return ds
	}
	for i, d := range ds {
		if d.Line > 0 {
			ds[i].Span = spanAt(d.File, original, r.original(offsetOf(r.text, d.Line, d.Col)), r.original(offsetOf(r.text, d.EndLine, d.EndCol)))
		}
	}
	return ds
}

// insert returns r with text inserted at an offset of r.text.
func (r *repaired) insert(at int, text string) *repaired {
	out := &repaired{text: r.text[:at] + text + r.text[at:]}
	out.inserts = append(slices.Clone(r.inserts), insert{r.original(at), text})
	slices.SortStableFunc(out.inserts, func(a, b insert) int { return a.at - b.at })
	return out
}

// blank returns r with a part of r.text replaced with blanks.
func (r *repaired) blank(from, to int) *repaired {
	return &repaired{text: r.text[:from] + strings.Repeat(" ", to-from) + r.text[to:], inserts: r.inserts}
}

// closeQuotes inserts missing quotes into a text, and reports each.
func closeQuotes(name, text string) (r *repaired, ds Diagnostics) {
	r = &repaired{text: text}
	for range maxRepairs {
		at := -1
		f := token.NewFile(name)
		s := scanner.New(f, []byte(r.text), func(pos token.Pos, msg string) {
			if msg == errQuote && at < 0 {
				at = pos.Offset()
			}
		}, 0)
		for tok := token.Token(0); tok != token.EOF; {
			_, tok, _ = s.Scan()
		}
		if at < 0 || r.text[at] != '"' {
			return r, ds // the end of a raw string cannot be guessed
		}
		d := Diagnostic{Span: spanAt(name, text, r.original(at), r.original(at)), Msg: errQuote, Hint: `a " is missing at its end`}
		place := endOfString(r.text, at)
		if start := startOfWord(r.text, at); start < at {
			place = start
			d.Span, d.Hint = spanAt(name, text, r.original(start), r.original(start)), `a " is missing before it`
		}
		ds = append(ds, d)
		r = r.insert(place, `"`)
	}
	return r, ds
}

const errQuote = "string literal not terminated"

// startOfWord returns the offset of the word that ends with a quote. It returns
// the quote's offset if the quote begins a string.
func startOfWord(text string, quote int) int {
	return 1 + strings.LastIndexAny(text[:quote], "\n\t\" ,=+!<>|&[](){}")
}

// endOfString returns where an unterminated string that begins at a quote was
// probably meant to end: before the brackets that close the brackets of the
// line, or before the bracket of a block.
func endOfString(text string, quote int) int {
	line := 1 + strings.LastIndexByte(text[:quote], '\n')
	end := len(text)
	if n := strings.IndexByte(text[quote:], '\n'); n >= 0 {
		end = quote + n
	}
	trim := func() { end = quote + len(strings.TrimRight(text[quote:end], " \t\r")) }
	trim()
	if text[end-1] == ',' && end-1 > quote {
		end--
		trim()
	}
	before := text[line:quote]
	if text[end-1] == '{' && !strings.ContainsAny(before, "=[{(") && end-1 > quote {
		end--
		trim()
		return end
	}
	var open []byte
	quoted := false
	for i := range len(before) {
		switch c := before[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[', c == '(':
			open = append(open, closing[c])
		case len(open) > 0 && c == open[len(open)-1]:
			open = open[:len(open)-1]
		}
	}
	for _, c := range open { // the outermost bracket is the last one in the line
		if text[end-1] != c || end-1 <= quote {
			break
		}
		end--
		trim()
	}
	return end
}

var closing = map[byte]byte{'{': '}', '[': ']', '(': ')'}

// repair returns the errors in a text that does not parse: the changes that
// were needed to make it parse, as far as they could be found.
func repair(name, text string) (ds Diagnostics) {
	r := &repaired{text: text}
	for range maxRepairs {
		first, ok := firstError(name, r)
		if !ok {
			break
		}
		best, furthest := (*repaired)(nil), first.at
		var missing string
		for _, c := range r.candidates(first) {
			next, more := firstError(name, c.repaired)
			if !more {
				best, missing = c.repaired, c.missing
				break
			}
			if next.at > furthest {
				best, furthest, missing = c.repaired, next.at, c.missing
			}
		}
		d := Diagnostic{Span: spanAt(name, text, first.at, first.end), Msg: first.msg}
		if missing != "" {
			d.Msg = fmt.Sprintf("missing '%s'", missing)
		}
		ds = append(ds, d)
		if best == nil {
			break
		}
		r = best
	}
	return ds
}

// syntaxError is the first error in a text.
type syntaxError struct {
	at  int // offset in the original
	end int // offset of its last character
	pos int // offset in the repaired text
	msg string
}

func firstError(name string, r *repaired) (e syntaxError, ok bool) {
	_, err := parser.ParseFile(name, []byte(r.text))
	if err == nil {
		return e, false
	}
	ds := fromSyntax(err, Span{File: name, Line: 1, Col: 1})
	d := slices.MinFunc(ds, func(a, b Diagnostic) int {
		// The scanner has already reported the character.
		illegal := func(d Diagnostic) int { return map[bool]int{true: 1}[strings.HasSuffix(d.Msg, ", got ILLEGAL")] }
		return cmp.Or(a.Line-b.Line, a.Col-b.Col, illegal(a)-illegal(b))
	})
	pos := offsetOf(r.text, d.Line, d.Col)
	return syntaxError{r.original(pos), r.original(offsetOf(r.text, d.EndLine, d.EndCol)), pos, d.Msg}, true
}

// candidate is a text with one more change.
type candidate struct {
	*repaired
	missing string // the inserted bracket; "" for any other change
}

// candidates returns changes that may repair an error, best first.
func (r *repaired) candidates(e syntaxError) (out []candidate) {
	pos := min(e.pos, len(r.text))
	line := 1 + strings.LastIndexByte(r.text[:pos], '\n')
	end := len(r.text)
	if n := strings.IndexByte(r.text[pos:], '\n'); n >= 0 {
		end = pos + n
	}
	add := func(r *repaired, missing string) { out = append(out, candidate{r, missing}) }
	switch {
	case strings.HasPrefix(e.msg, "missing ','"):
		for _, s := range []string{"]", "}", ")"} {
			add(r.insert(pos, s), s)
		}
		for _, s := range []string{"}]", ")]", "]}", "])"} {
			add(r.insert(pos, s), s)
		}
		add(r.insert(pos, ","), "")
	case strings.HasPrefix(e.msg, "expected expression"):
		add(r.insert(pos, "null "), "")
		add(r.insert(pos, "null\n"), "")
	}
	if pos < len(r.text) && strings.IndexByte(")]}", r.text[pos]) >= 0 {
		add(r.blank(pos, pos+1), "") // the bracket is superfluous
	}
	if balanced(r.text[line:end]) {
		add(r.blank(line, end), "")
	}
	return out
}

// balanced reports whether a line opens and closes the same brackets.
func balanced(line string) bool {
	return strings.Count(line, "{") == strings.Count(line, "}") &&
		strings.Count(line, "[") == strings.Count(line, "]") && strings.Count(line, "(") == strings.Count(line, ")")
}

// offsetOf returns the offset of a line and column, which start at 1.
func offsetOf(text string, line, col int) int {
	at := 0
	for ; line > 1; line-- {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
	}
	return min(at+col-1, len(text))
}

// spanAt returns the span between two offsets. The end is inclusive.
func spanAt(name, text string, from, to int) Span {
	place := func(at int) (line, col int) {
		return 1 + strings.Count(text[:at], "\n"), at - strings.LastIndexByte(text[:at], '\n')
	}
	s := Span{File: name}
	s.Line, s.Col = place(from)
	s.EndLine, s.EndCol = place(max(from, to))
	return s
}
