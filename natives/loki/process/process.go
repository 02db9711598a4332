// Package process is loki.process: it extracts values from log lines, uses them to
// change lines, times, labels and metadata, and drops lines.
//
// All stages of a node work on a batch one after the other, on the goroutine
// that brought it; cores are used because several Sources bring batches at once.
// A pass (pass.go) has the batch's columns, of which those that change are copied
// once, the rows that are left, and what was extracted, in numbered slots.
//
// A stage is a file stage_<name>.go with its arguments, which are a field of
// Stage in args.go. Their Validate says all that is wrong, naming the attribute,
// so that weir check shows its position. Their make compiles them (compile.go):
// stages are made from the last to the first, so that compiler.write knows
// whether any stage after this one reads a value: what nobody asks for is not
// extracted. A stage calls write for all that it extracts before it calls read.
// run then loops over p.rows:
//
//   - values: p.get and p.set with slots; a value that no stage extracted is the
//     label of its name.
//   - labels: a derivation (compiler.derive), asked for each row's stream, and
//     p.setStream; never a label set a line.
//   - rows: p.keep and p.drop remove some; p.add puts one of the stage's own there.
//   - what goes over reloads: keep, in make.
//   - lines that are kept beyond the call: groups (groups.go), which knows about
//     acknowledgements and time.
//
// A test is a file in testdata, see files_test.go.
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
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(o, args.(*Arguments), previous)
		},
	}
}

// Component is one loki.process.
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

// Update takes new arguments. Stages that did not change keep what they know.
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

// Sourced returns the databases that stages read.
func (c *Component) Sourced() (paths []string) {
	for _, db := range c.gen.Load().Rules.geo {
		paths = append(paths, db.path)
	}
	return paths
}

// Run sends lines whose time has come, and sweeps, until ctx ends. What is kept
// then is sent, unless another component took over.
func (c *Component) Run(ctx context.Context) error {
	sweeps, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Stages run on this goroutine, where their panics are the node's.
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = c.gen.Run(sweeps, c.opts.Clock) }) // it returns nil
	c.mem.keepTime(ctx, c.opts.Clock)
	return nil
}

// ConsumeLogs passes b through the stages and sends what they leave.
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
	if !stopped { // else what was dropped comes again
		err = c.mem.sender.SendLogs(ctx, out)
	}
	for _, h := range free {
		h.Release()
	}
	return err
}
