// Package selector is LogQL's stream selectors and line filters, such as
//
//	{app="api", env=~"prod|stage"} |= "error" != "timeout" or "refused"
//
// parsed and applied by our own code: which streams match is found once for
// each, and a line is compared with plain text wherever a regular expression is
// no more than that. What follows line filters in LogQL (parsers, label filters,
// formats) is refused; that is what stage.logql is for. It is not a component.
//
// The verdicts are Loki's, which tests hold it against, but where Loki departs
// from its own manual: there a regular expression matches what RE2 says.
package selector

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
)

// Source is the text of a selector that parses: selectors that are equal are
// equal by ==. The zero value is none.
type Source string

// UnmarshalText accepts what Parse does.
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

// Selector says which lines of which streams are meant. It is safe for
// concurrent use.
type Selector struct {
	matchers []matcher
	filters  []filter
	memo     batch.Memo[bool]
}

// matcher is one label matcher.
type matcher struct {
	name, op, value string
	re              *regexp.Regexp // of =~ and !~
}

func newMatcher(name, op, value string) (m matcher, err error) {
	m = matcher{name: name, op: op, value: value}
	if op == "=~" || op == "!~" {
		m.re, err = regexp.Compile("^(?s:" + value + ")$")
	}
	return m, err
}

// matches reports whether the value of the label, "" when there is none, is
// meant.
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

// Stream reports whether the labels of a stream are meant. It is remembered.
func (s *Selector) Stream(of *batch.Stream) bool {
	if v, ok := s.memo.Get(of); ok {
		return v
	}
	v := s.matches(of)
	if of.Released() {
		return v // its ID may be another's by now
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

// Line reports whether a line passes the filters; without any, all do. The error is
// that of g.
func (s *Selector) Line(line string, g regex.Guard) (bool, error) {
	for i := range s.filters {
		if ok, err := s.filters[i].passes(line, g); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Filters reports whether there are line filters: without any, the stream
// decides.
func (s *Selector) Filters() bool { return len(s.filters) > 0 }

// Sweep forgets released streams.
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
