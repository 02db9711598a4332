package process

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/regex"
)

// DropArguments are the arguments of stage.drop.
type DropArguments struct {
	// The reason under which dropped lines are counted.
	DropReason string `alloy:"drop_counter_reason,attr,optional"`
	// Extracted values to look at, with commas between their names. Alone, it
	// drops the lines that have all of them.
	Source string `alloy:"source,attr,optional"`
	// The value that source must have.
	Value string `alloy:"value,attr,optional"`
	// The separator that joins the values of several sources.
	Separator string `alloy:"separator,attr,optional"`
	// A regular expression that the values of source must match, or the line when
	// there is no source.
	Expression string `alloy:"expression,attr,optional"`
	// How old a line must be.
	OlderThan time.Duration `alloy:"older_than,attr,optional"`
	// How many bytes a line must have more than.
	LongerThan component.Size `alloy:"longer_than,attr,optional"`
}

// SetToDefault sets the reason and the separator.
func (a *DropArguments) SetToDefault() {
	*a = DropArguments{DropReason: "drop_stage", Separator: ";"}
}

// Validate checks that there is at least one condition.
func (a *DropArguments) Validate() error {
	var errs []error
	if a.Source == "" && a.Expression == "" && a.OlderThan == 0 && a.LongerThan == 0 {
		errs = append(errs, errors.New("there is no condition: set at least one of source, expression, older_than and longer_than"))
	}
	if a.Value != "" && a.Expression != "" {
		errs = append(errs, errors.New("value and expression cannot both be set"))
	}
	if a.Value != "" && a.Source == "" {
		errs = append(errs, errors.New("value needs a source"))
	}
	return errors.Join(append(errs, optionalRegexp("expression", a.Expression))...)
}

// dropStage drops the rows that meet all conditions.
type dropStage struct {
	DropArguments
	slots []int
	expr  *regex.Regexp // nil if there is no expression
}

func (a *DropArguments) compile(c *compiler) (stage, error) {
	s := &dropStage{DropArguments: *a}
	if s.DropReason == "" {
		s.DropReason = "drop_stage"
	}
	if s.Separator == "" {
		s.Separator = ";"
	}
	if a.Source != "" {
		for _, name := range strings.Split(a.Source, ",") {
			s.slots = append(s.slots, c.read(name))
		}
	}
	if a.Expression != "" {
		var err error
		if s.expr, err = compileRegexp("expression", a.Expression); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *dropStage) run(_ context.Context, p *pass) {
	oldest := int64(0)
	if s.OlderThan > 0 {
		oldest = p.pl.clock.Now().Add(-s.OlderThan).UnixNano()
	}
	var room []byte
	meant := func(row int, text string) bool {
		ok, err := s.expr.Match(text, p.guard())
		if err != nil {
			p.tooSlow(row)
		}
		return ok
	}
	p.drop(s.DropReason, func(row int) bool {
		if s.LongerThan > 0 && len(p.line[row]) <= int(s.LongerThan) {
			return true
		}
		if s.OlderThan > 0 && p.t[row] >= oldest {
			return true
		}
		switch {
		case len(s.slots) == 0:
			return s.expr != nil && !meant(row, p.line[row])
		case s.expr == nil && s.Value == "":
			for _, slot := range s.slots {
				if !p.get(slot, row).exists() {
					return true
				}
			}
			return false
		}
		room = room[:0]
		n := 0
		var one string
		for _, slot := range s.slots {
			v := p.get(slot, row)
			if !v.exists() {
				continue
			}
			text, ok := v.str()
			if !ok {
				return true
			}
			if one = text; n > 0 {
				room = append(room, s.Separator...)
			}
			if n++; len(s.slots) > 1 {
				room = append(room, text...)
			}
		}
		switch {
		case len(s.slots) == 1 && s.expr != nil:
			return !meant(row, one)
		case len(s.slots) == 1:
			return one != s.Value
		case s.expr != nil:
			return !meant(row, string(room))
		}
		return string(room) != s.Value
	})
}
