package process

import (
	"context"
	"errors"
	"slices"
	"strings"
	"text/template"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/regex"
)

// ReplaceArguments are the arguments of stage.replace.
type ReplaceArguments struct {
	// The regular expression whose groups are replaced, wherever it matches.
	Expression string `alloy:"expression,attr"`
	// The extracted value to change instead of the line.
	Source string `alloy:"source,attr,optional"`
	// The replacement for each group: a template in which .Value is the group; extracted
	// values are available by name.
	Replace string `alloy:"replace,attr,optional"`
}

// Validate checks that the expression and the template compile.
func (a *ReplaceArguments) Validate() error {
	_, err := compileRegexp("expression", a.Expression)
	_, terr := parseTemplate("replace", a.Replace)
	return errors.Join(err, terr)
}

var _ component.Warner = (*ReplaceArguments)(nil)

// Warnings reports an expression without groups, which changes nothing.
func (a *ReplaceArguments) Warnings() []string {
	if re, err := compileRegexp("expression", a.Expression); err == nil && re.NumSubexp() == 0 {
		return []string{"expression has no group in parentheses, so that nothing is replaced"}
	}
	return nil
}

// replaceStage replaces the text that groups match.
type replaceStage struct {
	source int // negative for the line
	re     *regex.Regexp
	t      *template.Template // nil if the replacement is plain text
	plain  string
	data   *templateData
	names  []int // by group: the slot of its name, negative if it has none
}

func (a *ReplaceArguments) compile(c *compiler) (stage, error) {
	re, err := compileRegexp("expression", a.Expression)
	if err != nil {
		return nil, err
	}
	s := &replaceStage{re: re, plain: a.Replace, data: &templateData{}}
	for _, name := range re.SubexpNames() {
		slot, wanted := -1, false
		if name != "" {
			slot, wanted = c.write(name)
		}
		if !wanted {
			slot = -1
		}
		s.names = append(s.names, slot)
	}
	if strings.Contains(a.Replace, "{{") {
		if s.t, err = parseTemplate("replace", a.Replace); err != nil {
			return nil, err
		}
		s.data = newTemplateData(c, s.t)
	}
	s.source = c.source(a.Source)
	return s, nil
}

func (s *replaceStage) run(_ context.Context, p *pass) {
	data := *s.data // run is called by several goroutines at once
	data.to = nil
	var made bounded
	for _, r := range p.rows {
		in, ok := p.source(s.source, r)
		if !ok {
			continue
		}
		var td map[string]any
		made.guard = p.guard()
		err := s.replace(p, r, in, made.guard, func(group string) (string, error) {
			if s.t == nil {
				return s.plain, nil
			}
			if td == nil {
				td = data.fill(p, r)
			}
			td["Value"] = group
			return made.execute(s.t, td)
		})
		if err != nil && !errors.Is(err, errValue) {
			p.tooSlow(r)
		}
	}
}

// replace replaces the groups of all matches in a text, one after the other. A
// group inside another group is not replaced by itself. If there is an error, the
// text stays unchanged.
func (s *replaceStage) replace(p *pass, row int, in string, g regex.Guard, with func(group string) (string, error)) error {
	var out strings.Builder
	end := 0
	var first []int
	var became map[string]string // the replacements of named groups
	err := s.re.Each(in, -1, g, func(at []int) error {
		if first == nil {
			first = at
			if slices.ContainsFunc(s.names, func(slot int) bool { return slot >= 0 }) {
				became = map[string]string{}
			}
		}
		for g := 2; g < len(at); g += 2 {
			if at[g] < 0 {
				continue
			}
			group := in[at[g]:at[g+1]]
			text, err := with(group)
			if err != nil {
				return err
			}
			if end <= at[g] {
				out.WriteString(in[end:at[g]])
				out.WriteString(text)
				end = at[g+1]
			}
			if became != nil {
				became[group] = text
			}
			if out.Len()+len(in)-end > maxMade {
				return errTooLong
			}
		}
		return nil
	})
	if err != nil || first == nil {
		return err
	}
	out.WriteString(in[end:])
	if s.source < 0 {
		p.setLine(row, out.String())
	} else {
		p.set(s.source, row, value{text, out.String()})
	}
	for g, slot := range s.names {
		if slot < 0 {
			continue
		}
		group := ""
		if at := first[2*g]; at >= 0 {
			group = in[at:first[2*g+1]]
		}
		if text, ok := became[group]; ok {
			p.set(slot, row, plain(text))
		}
	}
	return nil
}
