package process

import (
	"context"
	"errors"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/regex"
)

// RegexArguments are the arguments of stage.regex.
type RegexArguments struct {
	// The regular expression, in Go's syntax. Its named groups are extracted.
	Expression string `alloy:"expression,attr"`
	// The extracted value to read instead of the line.
	Source *string `alloy:"source,attr,optional"`
	// Whether the named groups become labels too.
	LabelsFromGroups bool `alloy:"labels_from_groups,attr,optional"`
}

// Validate checks that the expression compiles.
func (a *RegexArguments) Validate() error {
	_, err := compileRegexp("expression", a.Expression)
	return errors.Join(err, notEmpty(a.Source))
}

var _ component.Warner = (*RegexArguments)(nil)

// Warnings reports an expression without named groups, which extracts nothing.
func (a *RegexArguments) Warnings() []string {
	if re, err := compileRegexp("expression", a.Expression); err == nil && strings.Join(re.SubexpNames(), "") == "" {
		return []string{"expression has no named group such as (?P<name>.*), so that nothing is extracted"}
	}
	return nil
}

// regexStage extracts the text that the named groups of an expression match.
type regexStage struct {
	*namedParts
	re     *regex.Regexp
	groups []int // the groups with names
}

func (a *RegexArguments) compile(c *compiler) (stage, error) {
	re, err := compileRegexp("expression", a.Expression)
	if err != nil {
		return nil, err
	}
	s := &regexStage{re: re}
	var names []string
	for i, n := range re.SubexpNames() {
		if n != "" {
			names, s.groups = append(names, n), append(s.groups, i)
		}
	}
	s.namedParts = newNamedParts(c, names, a.LabelsFromGroups, a.Source)
	return s, nil
}

func (s *regexStage) run(ctx context.Context, p *pass) {
	s.namedParts.run(ctx, p, func(in string, parts []value) ([]value, error) {
		at, err := s.re.FindSubmatchIndex(in, p.guard())
		if at == nil {
			return nil, err
		}
		for _, g := range s.groups {
			v := value{kind: text} // a group that did not participate in the match is empty
			if from := at[2*g]; from >= 0 {
				v.text = in[from:at[2*g+1]]
			}
			parts = append(parts, v)
		}
		return parts, nil
	})
}
