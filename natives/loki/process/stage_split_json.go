package process

import (
	"context"
	"encoding/json"
	"strings"
)

// SplitJSONArguments are the arguments of stage.split_json.
type SplitJSONArguments struct {
	// The extracted value to read instead of the line.
	Source *string `alloy:"source,attr,optional"`
}

// Validate checks that the source is not empty.
func (a *SplitJSONArguments) Validate() error { return notEmpty(a.Source) }

// splitJSONStage creates a line from each element of a JSON list. Lines that are
// not a JSON list stay unchanged.
type splitJSONStage struct{ source int }

func (a *SplitJSONArguments) compile(c *compiler) (stage, error) {
	if a.Source == nil {
		return &splitJSONStage{-1}, nil
	}
	return &splitJSONStage{c.read(*a.Source)}, nil
}

func (s *splitJSONStage) run(_ context.Context, p *pass) {
	var rows []int // nil while all lines stay unchanged
	for i, r := range p.rows {
		elems, ok := s.split(p, r)
		if !ok {
			if rows != nil {
				rows = append(rows, r)
			}
			continue
		}
		if rows == nil {
			rows = append(make([]int, 0, len(p.rows)+len(elems)), p.rows[:i]...)
		}
		if len(elems) == 0 {
			p.pl.countDropped("empty_json_list", 1)
		}
		e := p.entry(r)
		for _, elem := range elems {
			e.line = string(elem)
			rows = append(rows, p.add(&e))
		}
	}
	if rows != nil {
		p.rows = rows
	}
}

func (s *splitJSONStage) split(p *pass, row int) ([]json.RawMessage, bool) {
	in, ok := p.source(s.source, row)
	if !ok || !strings.HasPrefix(strings.TrimLeft(in, " \t\r\n"), "[") {
		return nil, false
	}
	var elems []json.RawMessage
	err := json.Unmarshal([]byte(in), &elems)
	return elems, err == nil
}
