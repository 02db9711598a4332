package process

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// SamplingArguments are the arguments of stage.sampling.
type SamplingArguments struct {
	// The part of all lines that stays, between 0 and 1.
	Rate float64 `alloy:"rate,attr"`
	// The reason under which dropped lines are counted.
	DropReason string `alloy:"drop_counter_reason,attr,optional"`
}

// SetToDefault sets the reason.
func (a *SamplingArguments) SetToDefault() { *a = SamplingArguments{DropReason: "sampling_stage"} }

// Validate checks that the rate is between 0 and 1.
func (a *SamplingArguments) Validate() error {
	if !(a.Rate >= 0 && a.Rate <= 1) {
		return fmt.Errorf("rate is %v, must be between 0 and 1", a.Rate)
	}
	return nil
}

// samplingStage keeps a random sample of the rows.
type samplingStage struct{ SamplingArguments }

func (a *SamplingArguments) compile(*compiler) (stage, error) {
	s := &samplingStage{*a}
	if s.DropReason == "" {
		s.DropReason = "sampling_stage"
	}
	return s, nil
}

func (s *samplingStage) run(_ context.Context, p *pass) {
	if s.Rate == 1 {
		return
	}
	p.drop(s.DropReason, func(int) bool { return rand.Float64() < s.Rate })
}
