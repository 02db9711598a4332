package process

import (
	"context"
	"errors"
)

// OutputArguments are the arguments of stage.output.
type OutputArguments struct {
	// The extracted value that becomes the line; without it the line stays.
	Source string `alloy:"source,attr"`
}

// Validate checks that there is a source.
func (a *OutputArguments) Validate() error {
	if a.Source == "" {
		return errors.New("source is empty: name the extracted value that becomes the line")
	}
	return nil
}

type outputStage struct{ slot int }

func (a *OutputArguments) compile(c *compiler) (stage, error) {
	return &outputStage{c.read(a.Source)}, nil
}

func (s *outputStage) run(_ context.Context, p *pass) {
	for _, r := range p.rows {
		if v, ok := p.get(s.slot, r).str(); ok {
			p.setLine(r, v)
		}
	}
}
