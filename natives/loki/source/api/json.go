package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
)

// pushJSON decodes a push request in JSON:
//
//	{"streams": [{"stream": {"label": "value"}, "values": [["<Unix ns>", "<line>", {"name": "value"}]]}]}
//
// It calls stream before the entries of each stream, with the labels in their
// original order, and entry with each entry. The first error that one of them
// returns ends the decoding. Strings without escapes alias s.
//
// Format:
// https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
func pushJSON(s string, limits *Limits, stream func([]batch.Label) error, entry func(t int64, line string, meta []batch.Label) error) error {
	p := &jsonParser{s: s, limits: limits}
	p.push(stream, entry)
	if p.space(); p.err == nil && p.i < len(s) {
		p.fail("want nothing after the object")
	}
	return p.err
}

// jsonParser parses JSON. After the first error, it reads nothing more.
type jsonParser struct {
	s      string
	i      int
	limits *Limits
	err    error
}

var errJSON = errors.New("the body is not a push request in JSON")

func (p *jsonParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: at byte %d: "+format, append([]any{errJSON, p.i}, args...)...)
	}
	p.i = len(p.s)
}

// end records err as the first error, unless it is nil.
func (p *jsonParser) end(err error) {
	if err != nil && p.err == nil {
		p.err = err
		p.i = len(p.s)
	}
}

func (p *jsonParser) push(stream func([]batch.Label) error, entry func(int64, string, []batch.Label) error) {
	for key := range p.object() {
		if key != "streams" {
			p.skip(0)
			continue
		}
		if p.null() {
			continue
		}
		for range p.list() {
			p.stream(stream, entry)
		}
	}
}

// stream parses one stream. Its labels may follow its values.
func (p *jsonParser) stream(stream func([]batch.Label) error, entry func(int64, string, []batch.Label) error) {
	var labels []batch.Label
	values := -1
	named := false
	for key := range p.object() {
		switch key {
		case "stream":
			labels, named = nil, true
			if !p.null() {
				labels = p.labels(p.limits.LabelLimit)
			}
		case "values":
			if !named { // the values are parsed when the labels are known
				p.space()
				values = p.i
				p.skip(0)
				continue
			}
			p.end(stream(labels))
			p.values(entry)
			values = -1
		default:
			p.skip(0)
		}
	}
	if values >= 0 && p.err == nil {
		end := p.i
		p.i = values
		p.end(stream(labels))
		p.values(entry)
		if p.err == nil {
			p.i = end
		}
	}
}

func (p *jsonParser) values(entry func(int64, string, []batch.Label) error) {
	if p.null() {
		return
	}
	for range p.list() {
		var t int64
		var line string
		var meta []batch.Label
		n := 0
		for range p.list() {
			switch n++; n {
			case 1:
				text := p.text()
				v, err := strconv.ParseInt(text, 10, 64)
				if err != nil && p.err == nil {
					p.fail("want Unix nanoseconds in quotes, not %.40q", text)
				}
				t = v
			case 2:
				line = p.text()
			case 3:
				meta = p.labels(p.limits.MetadataLimit)
			default:
				p.skip(0)
			}
		}
		if p.err == nil && n < 2 {
			p.fail("want a time and a line, there are %d values", n)
		}
		if p.err == nil {
			p.end(entry(t, line, meta))
		}
	}
}

// labels parses an object of strings. If most is not 0, it returns at most most+1
// labels.
func (p *jsonParser) labels(most int) (ls []batch.Label) {
	for key := range p.object() {
		l := batch.Label{Name: key, Value: p.text()}
		if most == 0 || len(ls) <= most {
			ls = append(ls, l)
		}
	}
	return ls
}

func (p *jsonParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// skipByte skips c if it is the next byte.
func (p *jsonParser) skipByte(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *jsonParser) null() bool {
	p.space()
	if p.err == nil && strings.HasPrefix(p.s[p.i:], "null") {
		p.i += len("null")
		return true
	}
	return false
}

// object yields the keys of an object. The caller parses the value of each key.
func (p *jsonParser) object() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if !p.skipByte('{') {
			p.fail("want an object")
			return
		}
		if p.skipByte('}') {
			return
		}
		for p.err == nil {
			key := p.text()
			if p.err == nil && !p.skipByte(':') {
				p.fail(`want ":"`)
			}
			if p.err != nil || !yield(key) || p.err != nil {
				return
			}
			if p.skipByte('}') {
				return
			}
			if !p.skipByte(',') {
				p.fail(`want "," or "}"`)
			}
		}
	}
}

// list yields once for each element of a list. The caller parses the element.
func (p *jsonParser) list() func(yield func() bool) {
	return func(yield func() bool) {
		if !p.skipByte('[') {
			p.fail("want a list")
			return
		}
		if p.skipByte(']') {
			return
		}
		for p.err == nil {
			if !yield() || p.err != nil || p.skipByte(']') {
				return
			}
			if !p.skipByte(',') {
				p.fail(`want "," or "]"`)
			}
		}
	}
}

// text parses a string.
func (p *jsonParser) text() string {
	if !p.skipByte('"') {
		p.fail("want a string")
		return ""
	}
	rest := p.s[p.i:]
	n := strings.IndexByte(rest, '"')
	if n < 0 {
		p.fail("the string has no end")
		return ""
	}
	if strings.IndexByte(rest[:n], '\\') < 0 {
		p.i += n + 1
		return rest[:n]
	}
	return p.escaped(rest)
}

// escaped parses a string that contains escapes.
func (p *jsonParser) escaped(rest string) string {
	b := make([]byte, 0, 256)
	for i := 0; i < len(rest); {
		switch c := rest[i]; {
		case c == '"':
			p.i += i + 1
			return string(b)
		case c != '\\':
			n := strings.IndexAny(rest[i:], `"\`)
			if n < 0 {
				p.fail("the string has no end")
				return ""
			}
			b = append(b, rest[i:i+n]...)
			i += n
		default:
			var n int
			if b, n = unescape(b, rest[i:]); n == 0 {
				p.i += i
				p.fail("there is no such escape")
				return ""
			}
			i += n
		}
	}
	p.fail("the string has no end")
	return ""
}

// unescape appends the character for the escape at the beginning of s. It returns
// the length of the escape, or 0 if it is invalid.
func unescape(b []byte, s string) ([]byte, int) {
	if len(s) < 2 {
		return b, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return append(b, "\"\\/\b\f\n\r\t"[i]), 2
	}
	r := hex(s)
	if r < 0 {
		return b, 0
	}
	if utf16.IsSurrogate(r) {
		if both := utf16.DecodeRune(r, hex(s[6:])); both != utf8.RuneError {
			return utf8.AppendRune(b, both), 12
		}
		r = utf8.RuneError
	}
	return utf8.AppendRune(b, r), 6
}

// hex parses \uXXXX. It returns -1 if s does not begin with it.
func hex(s string) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(v)
}

// maxDepth is the maximum nesting depth of skipped values.
const maxDepth = 100

// skip skips a value of any kind.
func (p *jsonParser) skip(depth int) {
	p.space()
	if p.i >= len(p.s) || depth > maxDepth {
		p.fail("want a value")
		return
	}
	switch p.s[p.i] {
	case '"':
		p.text()
	case '{':
		for range p.object() {
			p.skip(depth + 1)
		}
	case '[':
		for range p.list() {
			p.skip(depth + 1)
		}
	default:
		n := strings.IndexAny(p.s[p.i:], ",]} \t\r\n")
		if n < 0 {
			n = len(p.s) - p.i
		}
		if n == 0 {
			p.fail("want a value")
			return
		}
		p.i += n
	}
}
