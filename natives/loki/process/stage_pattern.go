package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// PatternArguments are the arguments of stage.pattern.
type PatternArguments struct {
	// The pattern, as LogQL has it: text with names in angle brackets, which are
	// extracted, such as <ip> - <user> <_>.
	Pattern string `alloy:"pattern,attr"`
	// The extracted value to read instead of the line.
	Source *string `alloy:"source,attr,optional"`
	// Whether extracted values also become labels.
	LabelsFromGroups bool `alloy:"labels_from_groups,attr,optional"`
}

// Validate checks that there is a valid pattern with at least one name.
func (a *PatternArguments) Validate() error {
	_, err := parsePattern(a.Pattern)
	if err != nil {
		err = fmt.Errorf("pattern: %w", err)
	}
	return errors.Join(err, notEmpty(a.Source))
}

// pattern is a compiled pattern: the text before the first name, and then the
// names, each with the text that ends it. That text is empty at the end of the
// line.
//
// Format: https://grafana.com/docs/loki/latest/query/log_queries/#pattern
type pattern struct {
	head  string
	names []string // "_" for parts that are not extracted
	ends  []string
}

// parsePattern compiles a pattern.
func parsePattern(s string) (*pattern, error) {
	switch {
	case s == "":
		return nil, errors.New("it is empty: write text with names such as <ip>")
	case !utf8.ValidString(s):
		return nil, errors.New("it is not UTF-8")
	}
	p := &pattern{}
	seen := map[string]bool{}
	from := 0
	literal := func(to int) { // the text before a name
		if n := len(p.names); n > 0 {
			p.ends[n-1] = s[from:to]
		} else {
			p.head = s[from:to]
		}
	}
	for i := 0; i < len(s); i++ {
		name, ok := patternName(s[i:])
		if !ok {
			continue
		}
		if n := len(p.names); n > 0 && i == from {
			return nil, fmt.Errorf("there is nothing between <%s> and <%s> to tell them apart by", p.names[n-1], name)
		}
		if seen[name] && name != "_" {
			return nil, fmt.Errorf("<%s> appears twice", name)
		}
		seen[name] = true
		literal(i)
		p.names, p.ends = append(p.names, name), append(p.ends, "")
		i += len(name) + 1
		from = i + 1
	}
	literal(len(s))
	if !slices.ContainsFunc(p.names, func(n string) bool { return n != "_" }) {
		return nil, errors.New("it extracts nothing: write at least one name such as <ip>")
	}
	return p, nil
}

// patternName returns the name in angle brackets at the beginning of s.
func patternName(s string) (string, bool) {
	if s[0] != '<' {
		return "", false
	}
	name, _, ok := strings.Cut(s[1:], ">")
	if !ok || name == "" || '0' <= name[0] && name[0] <= '9' {
		return "", false
	}
	word := func(r rune) bool {
		return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return name, !strings.ContainsFunc(name, func(r rune) bool { return !word(r) })
}

// find appends the text at each name. If a text that ends a name does not occur,
// that name gets the whole rest, and the names after it get nothing.
func (p *pattern) find(in string, parts []value) []value {
	rest, ok := strings.CutPrefix(in, p.head)
	if in == "" || !ok {
		return nil
	}
	for i, name := range p.names {
		end := -1
		if p.ends[i] != "" {
			end = strings.Index(rest, p.ends[i])
		}
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		if name != "_" {
			parts = append(parts, value{text, part})
		}
		if end < 0 {
			break
		}
		rest = rest[end+len(p.ends[i]):]
	}
	return parts
}

// patternStage extracts the parts that a pattern names.
type patternStage struct {
	*namedParts
	pattern *pattern
}

func (a *PatternArguments) compile(c *compiler) (stage, error) {
	p, err := parsePattern(a.Pattern)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Clone(p.names), func(n string) bool { return n == "_" })
	return &patternStage{newNamedParts(c, names, a.LabelsFromGroups, a.Source), p}, nil
}

func (s *patternStage) run(ctx context.Context, p *pass) {
	s.namedParts.run(ctx, p, func(in string, parts []value) ([]value, error) { return s.pattern.find(in, parts), nil })
}
