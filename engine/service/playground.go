package service

import (
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// PlaygroundBlock is the block of a node of which a copy can run in a playground.
type PlaygroundBlock struct {
	File string // of the config
	Line int    // where the block begins
	Text string // of the block, secrets included
	// Accepts are the signals that the node takes; Targets reports that it processes the
	// targets in its arguments instead.
	Metrics, Logs, Targets bool
}

// PlaygroundInput is what a copy of a node processes.
type PlaygroundInput struct {
	Records flow.Batches
	Targets []map[string]string
}

// PlaygroundOutput is the result of a copy of a node.
type PlaygroundOutput struct {
	Records flow.Batches // that the copy has sent
	// Steps are the steps for each record of the input, or the first ones, in order; see
	// component.Explainer. It is nil if the component cannot explain.
	Steps   [][]component.Step
	Targets []component.TargetResult // one for each target of the input
	Took    time.Duration
	Log     string // lines that the copy has logged
}
