// Package process is loki.process: it extracts values from log lines,
// uses them to change lines, times, labels and metadata, and drops lines.
//
// All stages of a node process a batch one after the other, on the goroutine that
// delivered it. Several cores are used because several Sources deliver batches at
// once. A pass (pass.go) contains the columns of the batch, which are copied once
// before they are changed, the numbers of the remaining rows, and the extracted
// values in numbered slots.
//
// A stage is a file stage_<name>.go. It declares the arguments, which are a field
// of Stage in args.go. Their Validate reports all errors and names the
// attributes, so that weir check shows the positions. Their compile method
// compiles the stage (compile.go). Stages are compiled from the last to the
// first, so that compiler.write knows whether a later stage reads a value; values
// that no stage reads are not extracted. A stage calls write for all values that
// it extracts before it calls read. Its run method then loops over p.rows:
//
//   - values: p.get and p.set with slots; if no stage extracted a value, it is the
//     label of the same name.
//   - labels: a derivation (compiler.derive), which gives the stream of each row,
//     and p.setStream; never build a label set for each line.
//   - rows: p.filterRows and p.drop remove rows; p.add inserts a row of the stage.
//   - state that survives reloads: keepState, called in compile.
//   - lines that are kept after the call: groups (groups.go), which manage
//     acknowledgements and deadlines.
//
// Each test is a file in testdata; see files_test.go.
package process

import (
	"context"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/ruleset"
)

// Registration describes loki.process.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.process",
		Accepts: batch.SignalLogs,
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Pure:    true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(o, args.(*Arguments), previous)
		},
	}
}

// Component is the component of a loki.process node.
type Component struct {
	opts component.Options
	mem  *memory
	gen  *ruleset.Current[*pipeline]
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ flow.LogsConsumer   = (*Component)(nil)
	_ ruleset.Rules       = (*pipeline)(nil)
)

func newComponent(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{opts: o}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		c.mem = newMemory()
	}
	c.mem.register(o.Registerer)
	c.gen = c.mem.node.Follow()
	return c, c.set(a, true)
}

// Update applies new arguments. Stages that did not change keep their state.
func (c *Component) Update(args any) error { return c.set(args.(*Arguments), false) }

func (c *Component) set(a *Arguments, fresh bool) error {
	e := env{clock: c.opts.Clock, logger: c.opts.Logger, stats: c.opts.Stats, reg: c.opts.Registerer, mem: c.mem}
	if err := c.mem.next(c.gen, e, a.Stages, fresh); err != nil {
		return err
	}
	c.mem.sender.To(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	c.gen.Redirected()
	return nil
}

// Sourced returns the paths of the databases that the stages read.
func (c *Component) Sourced() (paths []string) {
	for _, db := range c.gen.Load().Rules.geo {
		paths = append(paths, db.path)
	}
	return paths
}

// Run sends lines when they are due and removes unused data until ctx ends. It
// then sends all kept lines unless another component took over.
func (c *Component) Run(ctx context.Context) error {
	sweeps, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Stages run on this goroutine, so that the node recovers from their panics.
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = c.gen.Run(sweeps, c.opts.Clock) }) // always returns nil
	c.mem.keepTime(ctx, c.opts.Clock)
	return nil
}

// ConsumeLogs passes b through the stages and sends the result.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	pl := c.gen.Load().Rules
	if pl.first == nil {
		return c.mem.sender.SendLogs(ctx, b)
	}
	if pl.holds {
		leave, err := c.mem.acquireTurn(ctx, b.Source)
		if err != nil {
			return err
		}
		defer leave()
	}
	p := pl.begin(ctx, b)
	pl.first.run(ctx, p)
	out, free, stopped := p.finish(), p.free, p.stopped
	p.release()
	err := context.Cause(ctx)
	if !stopped { // otherwise, the dropped lines are delivered again
		err = c.mem.sender.SendLogs(ctx, out)
	}
	for _, h := range free {
		h.Release()
	}
	return err
}
