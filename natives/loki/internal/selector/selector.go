// Package selector implements LogQL's stream selectors and line filters, such as
//
//	{app="api", env=~"prod|stage"} |= "error" != "timeout" or "refused"
//
// The parser and the filters are our own code: a stream is matched only once, and
// a line is searched for plain text wherever a regular expression is equivalent
// to that. Everything that LogQL allows after line filters (parsers, label
// filters, formats) is refused; stage.logql supports it. The package is not a
// component.
//
// Tests compare the results with Loki's. They are equal, except where Loki
// differs from its own manual: there, a regular expression matches as defined by
// RE2.
package selector

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
)

// Source is the text of a valid selector. Equal selectors are equal by ==. The
// zero value means that there is no selector.
type Source string

// UnmarshalText accepts the texts that Parse accepts.
func (s *Source) UnmarshalText(text []byte) error {
	if _, err := Parse(string(text)); err != nil {
		return err
	}
	*s = Source(text)
	return nil
}

// MarshalText returns the text.
func (s Source) MarshalText() ([]byte, error) { return []byte(s), nil }

// Compile returns the selector. It panics on one that UnmarshalText refuses.
func (s Source) Compile() *Selector {
	sel, err := Parse(string(s))
	if err != nil {
		panic(fmt.Sprintf("BUG: a selector was not checked: %v", err))
	}
	return sel
}

// Selector selects lines of streams. It is safe for concurrent use.
type Selector struct {
	matchers []matcher
	filters  []filter
	memo     batch.Memo[bool]
}

// matcher is one label matcher.
type matcher struct {
	name, op, value string
	re              *regexp.Regexp // for =~ and !~
}

func newMatcher(name, op, value string) (m matcher, err error) {
	m = matcher{name: name, op: op, value: value}
	if op == "=~" || op == "!~" {
		m.re, err = regexp.Compile("^(?s:" + value + ")$")
	}
	return m, err
}

// matches reports whether the value of the label matches; it is "" if the label
// does not exist.
func (m *matcher) matches(value string) bool {
	switch m.op {
	case "=":
		return value == m.value
	case "!=":
		return value != m.value
	case "=~":
		return m.re.MatchString(value)
	}
	return !m.re.MatchString(value)
}

// Stream reports whether the labels of a stream match. The result is cached.
func (s *Selector) Stream(of *batch.Stream) bool {
	if v, ok := s.memo.Get(of); ok {
		return v
	}
	v := s.matches(of)
	if of.Released() {
		return v // its ID may belong to another stream by now
	}
	return s.memo.Put(of, v)
}

func (s *Selector) matches(of *batch.Stream) bool {
	for i := range s.matchers {
		if m := &s.matchers[i]; !m.matches(of.Label(m.name)) {
			return false
		}
	}
	return true
}

// Line reports whether a line passes the filters. Without filters, every line
// does. The error is that of g.
func (s *Selector) Line(line string, g regex.Guard) (bool, error) {
	for i := range s.filters {
		if ok, err := s.filters[i].passes(line, g); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Filters reports whether there are line filters. Without any, the stream
// decides.
func (s *Selector) Filters() bool { return len(s.filters) > 0 }

// Sweep removes released streams from the cache.
func (s *Selector) Sweep() { s.memo.Sweep(nil) }

// String returns the selector in one line, without comments.
func (s *Selector) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range s.matchers {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(m.name + m.op + strconv.Quote(m.value))
	}
	b.WriteByte('}')
	for _, f := range s.filters {
		b.WriteString(" " + f.op)
		for i, o := range f.operands {
			if i > 0 {
				b.WriteString(" or")
			}
			if o.ip {
				b.WriteString(" ip(" + strconv.Quote(o.text) + ")")
			} else {
				b.WriteString(" " + strconv.Quote(o.text))
			}
		}
	}
	return b.String()
}
