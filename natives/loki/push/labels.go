package push

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
)

// AppendLabels appends the labels of a stream in Loki's format, {app="api",
// env="prod"}, without those that begin with two underscores. Names that are
// invalid in LogQL, such as k8s.pod, are sent as k8s_pod: Loki would store them
// unchanged and then fail to answer every query that finds one of their lines. An
// existing label with the changed name takes precedence.
func AppendLabels(dst []byte, s *batch.Stream) []byte {
	dst = append(dst, '{')
	first := true
	var taken map[string]bool // existing and sent names, if a name was changed
	for name, value := range s.Labels() {
		if strings.HasPrefix(name, "__") {
			continue
		}
		if identifier(name) != len(name) {
			name = LabelName(name)
			if strings.HasPrefix(name, "__") {
				name = "_" + strings.TrimLeft(name, "_")
			}
			if taken == nil {
				taken = map[string]bool{}
				for n := range s.Labels() {
					taken[n] = true
				}
			}
			if taken[name] {
				continue
			}
			taken[name] = true
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = appendQuoted(append(append(dst, name...), '='), value)
	}
	return append(dst, '}')
}

// LabelName converts a name that is invalid in LogQL to a valid one: invalid
// characters become _.
func LabelName(name string) string {
	if name == "" {
		return "_"
	}
	first := true
	return strings.Map(func(c rune) rune {
		ok := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
		first = false
		if !ok {
			return '_'
		}
		return c
	}, name)
}

// appendQuoted quotes a string for Loki's parser, which supports Go's escapes but
// refuses an unescaped replacement character.
func appendQuoted(dst []byte, s string) []byte {
	at := len(dst)
	dst = strconv.AppendQuote(dst, s)
	const replacement = string(utf8.RuneError)
	if strings.Contains(s, replacement) {
		dst = append(dst[:at], bytes.ReplaceAll(dst[at:], []byte(replacement), []byte(`\ufffd`))...)
	}
	return dst
}

// ParseLabels parses the labels of a stream from text, like Loki: the result is
// sorted by name and contains no empty labels. The labels may alias s. A
// duplicate name is an error. More than most labels are the error ErrTooMany; 0
// is no limit.
//
// Format: https://prometheus.io/docs/prometheus/latest/querying/basics/, with =
// alone
func ParseLabels(s string, most int) ([]batch.Label, error) {
	p := parser{s: s, most: most}
	labels, err := p.all()
	if err != nil {
		return nil, fmt.Errorf("cannot parse labels %s at byte %d: %w", quote(s), p.i, err)
	}
	slices.SortStableFunc(labels, byName)
	for i := range labels {
		if i > 0 && labels[i].Name == labels[i-1].Name {
			return nil, fmt.Errorf("cannot use labels %s: %q appears twice", quote(s), labels[i].Name)
		}
	}
	return slices.DeleteFunc(labels, func(l batch.Label) bool { return l.Value == "" }), nil
}

// quote quotes a string for an error message.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

func byName(a, b batch.Label) int { return cmp.Compare(a.Name, b.Name) }

// SortMeta brings the structured metadata of an entry into the form of a batch:
// sorted by name and without duplicates; the last value of a name is used. It
// modifies ls.
func SortMeta(ls []batch.Label) []batch.Label {
	sorted := true
	for i := 1; i < len(ls) && sorted; i++ {
		sorted = ls[i-1].Name < ls[i].Name
	}
	if sorted {
		return ls
	}
	slices.SortStableFunc(ls, byName)
	out := ls[:0]
	for _, l := range ls {
		if n := len(out); n > 0 && out[n-1].Name == l.Name {
			out[n-1] = l
			continue
		}
		out = append(out, l)
	}
	return out
}

// parser parses the labels of a stream.
type parser struct {
	s    string
	i    int
	most int
}

// ErrTooMany means that there are more labels than the limit.
var ErrTooMany = errors.New("there are too many labels")

func (p *parser) all() (labels []batch.Label, err error) {
	p.space()
	if name := p.metric(); name != "" {
		labels = append(labels, batch.Label{Name: batch.NameLabel, Value: name})
		p.space()
	}
	if len(labels) > 0 && p.end() {
		return labels, nil
	}
	if !p.skipByte('{') {
		return nil, errors.New(`want "{"`)
	}
	if labels == nil {
		labels = make([]batch.Label, 0, min(strings.Count(p.s, "="), 64)) // values may contain many equals signs
	}
	for p.space(); !p.skipByte('}'); {
		l, err := p.label()
		if err != nil {
			return nil, err
		}
		if p.most > 0 && len(labels) == p.most {
			return nil, ErrTooMany
		}
		labels = append(labels, l)
		p.space()
		if comma := p.skipByte(','); comma {
			p.space()
		} else if p.end() || p.s[p.i] != '}' {
			return nil, errors.New(`want "," or "}"`)
		}
	}
	if p.space(); !p.end() {
		return nil, errors.New("want nothing more")
	}
	return labels, nil
}

// label parses name="value", or the name of a metric in quotes.
func (p *parser) label() (l batch.Label, err error) {
	quoted := false
	if n := identifier(p.s[p.i:]); n > 0 {
		l.Name = p.s[p.i : p.i+n]
		p.i += n
	} else if !p.end() && strings.IndexByte("\"'`", p.s[p.i]) >= 0 {
		quoted = true
		if l.Name, err = p.quoted(); err != nil {
			return l, err
		}
	} else {
		return l, errors.New("want the name of a label")
	}
	p.space()
	if !p.skipByte('=') {
		if quoted {
			return batch.Label{Name: batch.NameLabel, Value: l.Name}, nil
		}
		return l, errors.New(`want "="`)
	}
	p.space()
	if p.end() || strings.IndexByte("\"'`", p.s[p.i]) < 0 {
		return l, errors.New("want a value in quotes")
	}
	l.Value, err = p.quoted()
	return l, err
}

// quoted parses a string in one of three kinds of quotes.
func (p *parser) quoted() (string, error) {
	q := p.s[p.i]
	rest := p.s[p.i+1:]
	if n := strings.IndexByte(rest, q); n >= 0 && (q == '`' || strings.IndexByte(rest[:n], '\\') < 0) {
		v := rest[:n]
		if q != '`' && strings.IndexByte(v, '\n') >= 0 {
			return "", errors.New("want no line feed in quotes")
		}
		if !clean(v) {
			return "", errors.New("want UTF-8")
		}
		p.i += n + 2
		return v, nil
	}
	var b []byte
	for rest != "" && rest[0] != q {
		if rest[0] == '\n' {
			return "", errors.New("want no line feed in quotes")
		}
		r, multibyte, tail, err := strconv.UnquoteChar(rest, q)
		if err != nil {
			return "", errors.New("there is no such escape")
		}
		if rest[0] != '\\' && r == utf8.RuneError {
			return "", errors.New("want UTF-8")
		}
		if r < utf8.RuneSelf || !multibyte {
			b = append(b, byte(r))
		} else {
			b = utf8.AppendRune(b, r)
		}
		rest = tail
	}
	if rest == "" {
		return "", errors.New("the quotes are not closed")
	}
	p.i = len(p.s) - len(rest) + 1
	return string(b), nil
}

// clean reports whether Loki's parser accepts a string in quotes.
func clean(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, utf8.RuneError) }

// metric parses the name of a metric. It returns "" if there is none.
func (p *parser) metric() string {
	from := p.i
	for p.i < len(p.s) {
		if n := identifier(p.s[p.i:]); n > 0 {
			p.i += n
		} else if c := p.s[p.i]; c == ':' || p.i > from && c >= '0' && c <= '9' {
			p.i++
		} else {
			break
		}
	}
	return p.s[from:p.i]
}

// space skips white space and comments.
func (p *parser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		case '#':
			n := strings.IndexByte(p.s[p.i:], '\n')
			if n < 0 {
				p.i = len(p.s)
				return
			}
			p.i += n
		default:
			return
		}
	}
}

func (p *parser) end() bool { return p.i == len(p.s) }

func (p *parser) skipByte(c byte) bool {
	if p.end() || p.s[p.i] != c {
		return false
	}
	p.i++
	return true
}

// identifier returns the length of the name at the beginning of s.
func identifier(s string) (n int) {
	for n < len(s) {
		c := s[n]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (n == 0 || c < '0' || c > '9') {
			break
		}
		n++
	}
	return n
}
