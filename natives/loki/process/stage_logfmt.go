package process

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"

	"github.com/weir-run/weir/engine/scan"
)

// LogfmtArguments are the arguments of stage.logfmt.
type LogfmtArguments struct {
	// Values to extract, by name: a key; an empty key means the name itself.
	Mapping map[string]string `alloy:"mapping,attr,optional"`
	// A regular expression; keys that match are extracted under their own names.
	Regex string `alloy:"regex,attr,optional"`
	// The extracted value to read instead of the line.
	Source string `alloy:"source,attr,optional"`
}

// Validate checks that there is a mapping or an expression.
func (a *LogfmtArguments) Validate() error {
	if len(a.Mapping) == 0 && a.Regex == "" {
		return errors.New("there is nothing to extract: set mapping, regex or both")
	}
	return optionalRegexp("regex", a.Regex)
}

// logfmtStage extracts the values of keys.
type logfmtStage struct {
	source int
	slots  map[string][]int // by key
	matching
}

func (a *LogfmtArguments) compile(c *compiler) (stage, error) {
	s := &logfmtStage{slots: map[string][]int{}}
	for _, name := range slices.Sorted(maps.Keys(a.Mapping)) {
		key := a.Mapping[name]
		if key == "" {
			key = name
		}
		if slot, wanted := c.write(name); wanted {
			s.slots[key] = append(s.slots[key], slot)
		}
	}
	s.matching = newMatching(c, a.Regex)
	s.source = c.source(a.Source)
	return s, nil
}

func (s *logfmtStage) run(_ context.Context, p *pass) {
	if len(s.slots) == 0 && s.matching.idle() {
		return
	}
	for _, r := range p.rows {
		in, ok := p.source(s.source, r)
		if !ok {
			continue
		}
		// The pairs before a syntax error are used.
		scan.Pairs(in, func(key, v string) {
			for _, slot := range s.slots[key] {
				p.set(slot, r, value{text, v})
			}
			s.matching.set(p, r, key, value{text, v})
		})
	}
}

// matching extracts values whose names match an expression. The names are only
// known at run time.
type matching struct {
	re    *regexp.Regexp // nil without an expression
	slots map[string]int // of the names that later stages read
	all   bool
}

func newMatching(c *compiler, expr string) matching {
	if expr == "" {
		return matching{}
	}
	m := matching{re: regexp.MustCompile(expr), slots: map[string]int{}, all: c.pl.all}
	for name, slot := range c.slots {
		if m.re.MatchString(name) {
			m.slots[name] = slot
		}
	}
	return m
}

// optionalRegexp returns the error of an expression that may be empty.
func optionalRegexp(attr, expr string) error {
	if expr == "" {
		return nil
	}
	_, err := compileRegexp(attr, expr)
	return err
}

// idle reports whether no later stage reads any of them.
func (m *matching) idle() bool { return len(m.slots) == 0 && !m.all }

// set sets a value if its name matches.
func (m *matching) set(p *pass, row int, name string, v value) {
	if slot, ok := m.slots[name]; ok {
		p.set(slot, row, v)
	} else if m.all && m.re.MatchString(name) {
		p.setExtra(row, name, v)
	}
}
