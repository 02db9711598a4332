package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/loki/internal/selector"
)

// MatchArguments are the arguments of stage.match.
type MatchArguments struct {
	// LogQL's selector of streams, with line filters or without, such as
	// `{app="api"} |= "error"`. It sees the labels and the line as the stages
	// before left them.
	Selector selector.Source `alloy:"selector,attr"`
	// Stages for the lines that match the selector; the other lines pass unchanged.
	Stages []Stage `alloy:"stage,enum,optional"`
	// "keep" passes the lines through the stages in the block, "drop" drops them.
	Action string `alloy:"action,attr,optional"`
	// Has no effect: stages are counted by their node. Alloy takes it, too, and does
	// nothing with it.
	PipelineName string `alloy:"pipeline_name,attr,optional"`
	// Reason under which dropped lines are counted.
	DropCounterReason string `alloy:"drop_counter_reason,attr,optional"`
}

// The values of action.
const (
	matchKeep = "keep"
	matchDrop = "drop"
)

// SetToDefault sets the action to keep.
func (a *MatchArguments) SetToDefault() {
	*a = MatchArguments{Action: matchKeep, DropCounterReason: "match_stage"}
}

// Validate checks that there are stages if the action is keep, and no stages if
// it is drop.
func (a *MatchArguments) Validate() error {
	var errs []error
	switch {
	case a.Action != "" && a.Action != matchKeep && a.Action != matchDrop:
		errs = append(errs, fmt.Errorf("action is %q, want keep or drop", a.Action))
	case a.Action == matchDrop && len(a.Stages) > 0:
		errs = append(errs, errors.New("stages are not allowed when action = \"drop\""))
	case a.Action != matchDrop && len(a.Stages) == 0:
		errs = append(errs, errors.New("the block contains no stages: add at least one, or set action = \"drop\""))
	}
	return errors.Join(errs...)
}

var _ component.Warner = (*MatchArguments)(nil)

// Warnings names an argument that has no effect.
func (a *MatchArguments) Warnings() []string {
	if a.PipelineName != "" {
		return []string{"pipeline_name has no effect"}
	}
	return nil
}

// matchStage runs stages on the rows that match, or drops these rows.
type matchStage struct {
	sel    *selector.Selector
	drop   bool
	reason string

	first, after *link // the nested stages, and the stages after the match
}

func (a *MatchArguments) compile(c *compiler) (stage, error) {
	s := &matchStage{sel: a.Selector.Compile(), drop: a.Action == matchDrop, reason: a.DropCounterReason, after: c.after}
	if s.reason == "" {
		s.reason = "match_stage"
	}
	c.pl.sweeps = append(c.pl.sweeps, s.sel.Sweep)
	var err error
	s.first, err = c.nested(a.Stages)
	return s, err
}

func (s *matchStage) run(ctx context.Context, p *pass) {
	is := s.matcherFor(p)
	if s.drop {
		p.drop(s.reason, func(row int) bool { return !is(row) })
		return
	}
	var mine, others []int
	for _, r := range p.rows {
		if is(r) {
			mine = append(mine, r)
		} else {
			others = append(others, r)
		}
	}
	if len(mine) == 0 {
		return
	}
	all, came := p.rows, len(p.line)
	p.rows = mine
	p.takeLabels()
	s.first.runUntil(ctx, p, s.after)
	p.rows = merge(all, p.rows, others, came)
	// Rows that took different paths may now belong to the same stream.
	if byTime := func(a, b int) int { return cmp.Compare(p.t[a], p.t[b]) }; !slices.IsSortedFunc(p.rows, byTime) {
		slices.SortStableFunc(p.rows, byTime)
	}
}

// matcherFor returns a function that reports whether a row matches.
func (s *matchStage) matcherFor(p *pass) func(row int) bool {
	var last *batch.Stream
	var is bool
	return func(row int) bool {
		if of := p.stream[row]; of != last {
			last, is = of, s.sel.Stream(of)
		}
		if !is || !s.sel.Filters() {
			return is
		}
		ok, err := s.sel.Line(p.line[row], p.guard())
		if err != nil {
			p.tooSlow(row)
		}
		return ok
	}
}

// merge inserts the rows in out, which the nested stages returned, between the
// other rows. Each row takes its position in all. Rows that the stages added,
// numbered from came, follow the row that precedes them in out.
func merge(all, out, others []int, came int) []int {
	place := func(row int) int { return row }
	if !slices.IsSorted(all) { // an earlier stage added rows
		places := make(map[int]int, len(all))
		for i, r := range all {
			places[r] = i
		}
		place = func(row int) int { return places[row] }
	}
	merged := make([]int, 0, len(out)+len(others))
	at := -1
	for _, r := range out {
		if r < came {
			at = max(at, place(r))
		}
		for len(others) > 0 && place(others[0]) < at {
			merged, others = append(merged, others[0]), others[1:]
		}
		merged = append(merged, r)
	}
	return append(merged, others...)
}
