package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

const (
	// maxPlayText is the maximum size of the block of a copy.
	maxPlayText = 64 << 10
	// maxPlayRows is the maximum number of records that a copy may send.
	maxPlayRows = 10_000
	// maxPlaySteps is the maximum number of records for which a copy names its steps.
	maxPlaySteps = 500
	// maxPlayLog is how much of the log lines of a copy is kept.
	maxPlayLog = 16 << 10
	// playTime is how long a copy may process its input. Nobody waits for it any longer;
	// the next copy runs after it has returned.
	playTime = 5 * time.Second
)

// errPlayTime is the cause with which a copy ends that takes too long.
var errPlayTime = fmt.Errorf("the copy took longer than %s", playTime)

// playable reports whether copies of a node can run in a playground.
func playable(w *wanted) bool { return w.kind == kindComponent && w.reg.Pure && w.reg.Build != nil }

// PlaygroundBlock returns the block of a node of a pure component.
func (e *Engine) PlaygroundBlock(id string) (service.PlaygroundBlock, bool) {
	n := e.graph.Load().byID[id]
	if n == nil {
		return service.PlaygroundBlock{}, false
	}
	w := n.shown.Load()
	if !playable(w) {
		return service.PlaygroundBlock{}, false
	}
	accepts := n.recv.Accepts()
	return service.PlaygroundBlock{
		File: w.block.File, Line: w.block.Line, Text: w.block.Text(),
		Metrics: accepts&batch.SignalMetrics != 0, Logs: accepts&batch.SignalLogs != 0, Targets: w.reg.Accepts == 0,
	}, true
}

// Play builds a copy of a node from another text of its block and lets it process the
// input. The copy sends nothing, and the node stays as it is.
func (e *Engine) Play(ctx context.Context, id, text string, in service.PlaygroundInput) (service.PlaygroundOutput, error) {
	if len(text) > maxPlayText {
		return service.PlaygroundOutput{}, fmt.Errorf("the block has %d bytes, more than the %d allowed", len(text), maxPlayText)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, playTime, errPlayTime)
	defer cancel()
	cfg, ds := config.Parse(map[string]string{"": text})
	if ds.HasErrors() {
		return service.PlaygroundOutput{}, ds.Err()
	}
	if len(cfg.Blocks) != 1 {
		return service.PlaygroundOutput{}, fmt.Errorf("there must be one block, not %d", len(cfg.Blocks))
	}
	type result struct {
		out service.PlaygroundOutput
		err error
	}
	played := make(chan result, 1) // the copy may return when nobody waits
	if err := e.runOnWorker(ctx, func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c, err := e.newNodeCopy(id, cfg.Blocks[0])
		if err != nil {
			return err
		}
		e.wg.Go(func() {
			select {
			case e.playing <- struct{}{}: // the CPU time of several would delay the data
			case <-ctx.Done():
				return
			}
			defer func() { <-e.playing }()
			var r result
			r.err = guard(func() (err error) {
				r.out, err = c.play(ctx, in)
				return err
			})
			r.out.Log = c.log.String()
			played <- r
		})
		return nil
	}); err != nil {
		return service.PlaygroundOutput{}, err
	}
	select {
	case r := <-played:
		if r.err != nil && ctx.Err() != nil {
			r.err = context.Cause(ctx)
		}
		return r.out, r.err
	case <-ctx.Done():
		return service.PlaygroundOutput{}, context.Cause(ctx)
	}
}

// nodeCopy is a component with the name of a node that is not a part of the graph.
type nodeCopy struct {
	e    *Engine
	id   string
	reg  component.Registration
	args any
	log  cutBuffer
}

// revealing are functions, with their old names, and the objects that contain them. Who
// may edit a copy does not necessarily know secrets or the environment of weir, so a copy
// may use them only if its node does.
var revealing = map[string]bool{"sys.env": true, "env": true, "sys": true, "convert.nonsensitive": true, "nonsensitive": true, "convert": true}

// newNodeCopy decodes the block of a copy, on the worker. Decoding has no effect on the
// graph.
func (e *Engine) newNodeCopy(id string, b *config.Block) (*nodeCopy, error) {
	w := e.plan.wanted[id]
	if w == nil || !playable(w) {
		return nil, fmt.Errorf("%s has no playground", id)
	}
	if b.ID != w.block.ID {
		return nil, config.Diagnostics{{Span: b.Span, Msg: fmt.Sprintf("the block must be %s, not %s", w.block.ID, b.ID)}}
	}
	for _, r := range b.References() {
		name := r.String()
		if revealing[name] && !w.block.RefersTo(func(other string) bool { return other == name }) {
			return nil, config.Diagnostics{{Span: r.Span, Msg: "a copy cannot use " + name, Hint: "the block of the node does not use it"}}
		}
	}
	_, ds := b.Resolve(w.values())
	c := &nodeCopy{e: e, id: id, reg: w.reg, args: w.reg.NewArgs(), log: cutBuffer{left: maxPlayLog}}
	ds = append(ds, b.Decode(w.values(), c.args)...)
	if !ds.HasErrors() {
		ds = append(ds, otherFiles(b, c.args, w.args)...)
	}
	if !ds.HasErrors() {
		edited := wanted{block: b, m: w.m, args: c.args, reg: w.reg}
		ds = append(ds, edited.checked(e.storage, e.plan.policy)...)
	}
	if ds.HasErrors() {
		return nil, ds.Sort().Err()
	}
	return c, b.Unready(w.values())
}

// otherFiles returns an error for each file that the arguments of a copy name and those
// of its node do not. A user who edits a copy is not necessarily allowed to read all files that weir can read.
func otherFiles(b *config.Block, edited, args any) (ds config.Diagnostics) {
	of, ok := edited.(component.FileNamer)
	if !ok {
		return nil
	}
	known := map[string]bool{}
	if node, ok := args.(component.FileNamer); ok {
		for _, f := range node.NamedFiles() {
			known[f.File] = true
		}
	}
	for _, f := range of.NamedFiles() {
		if !known[f.File] {
			ds = append(ds, config.Diagnostic{Span: b.SpanOf(f.Path), Msg: fmt.Sprintf("a copy cannot read %q", f.File), Hint: "the block of the node does not name this file"})
		}
	}
	return ds
}

// play builds and runs the component until it has processed the input.
func (c *nodeCopy) play(ctx context.Context, in service.PlaygroundInput) (out service.PlaygroundOutput, err error) {
	collected := &playCollector{left: maxPlayRows}
	to := flow.NewReceiver("playground", batch.SignalMetrics|batch.SignalLogs, nil, nil)
	to.Set(collected)
	defer to.Stop()
	config.Redirect(c.args, to)
	accepts, why := c.reg.Accepts, ""
	if c.reg.Passes != nil {
		accepts, why = c.reg.Passes(c.args)
	}
	for of, there := range map[batch.Signals]bool{batch.SignalMetrics: len(in.Records.Metrics) > 0, batch.SignalLogs: len(in.Records.Logs) > 0} {
		if there && accepts&of == 0 {
			if why != "" {
				why = ": " + why
			}
			return out, fmt.Errorf("the block does not accept %s%s", of, why)
		}
	}
	built, err := c.reg.Build(c.options(), c.args, nil)
	if err != nil {
		return out, fmt.Errorf("cannot build: %w", err)
	}
	run, stop := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() { ended <- guard(func() error { return built.Run(run) }) }()
	start := time.Now()
	err = c.consume(ctx, built, in, &out)
	out.Took = time.Since(start)
	if x, ok := built.(component.Explainer); ok && err == nil {
		out.Steps, err = stepsOf(ctx, x, in.Records)
	}
	stop(component.ErrRemoved) // lines that it keeps leave it now
	err = errors.Join(err, <-ended)
	out.Records = collected.take()
	return out, err
}

// consume passes the input to the component.
func (c *nodeCopy) consume(ctx context.Context, built component.Component, in service.PlaygroundInput, out *service.PlaygroundOutput) error {
	if x, ok := built.(component.TargetExplainer); ok {
		for _, t := range in.Targets {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			out.Targets = append(out.Targets, x.ExplainTarget(t))
		}
	}
	if m, ok := built.(flow.MetricsConsumer); ok {
		for _, b := range in.Records.Metrics {
			if err := m.ConsumeMetrics(ctx, b); err != nil {
				return err
			}
		}
	}
	if l, ok := built.(flow.LogsConsumer); ok {
		for _, b := range in.Records.Logs {
			if err := l.ConsumeLogs(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepsOf returns the steps of a component for the first records of the input.
func stepsOf(ctx context.Context, x component.Explainer, in flow.Batches) (out [][]component.Step, err error) {
	add := func(rows int, one func(row int) flow.Batches) {
		for i := 0; i < rows && len(out) < maxPlaySteps && err == nil; i++ {
			var steps []component.Step
			if steps, err = x.Explain(ctx, one(i)); err == nil {
				out = append(out, steps)
			}
		}
	}
	for _, b := range in.Metrics {
		add(b.Len(), func(i int) flow.Batches { return flow.Batches{Metrics: []*batch.Metrics{b.Rows([]int{i})}} })
	}
	for _, b := range in.Logs {
		add(b.Len(), func(i int) flow.Batches { return flow.Batches{Logs: []*batch.Logs{b.Rows([]int{i})}} })
	}
	return out, err
}

// options returns what Build gets: everything that a copy reports goes nowhere but into
// its log.
func (c *nodeCopy) options() component.Options {
	n := c.e.graph.Load().byID[c.id]
	return component.Options{
		ID: c.id, Logger: slog.New(slog.NewTextHandler(&c.log, nil)), Registerer: prometheus.NewRegistry(),
		UserAgent: "weir/" + c.e.o.Version, StoragePath: c.e.o.StoragePath, Clock: c.e.clock, Stats: new(flow.Stats),
		Export: func(any) {}, Health: func(component.Health) {},
		Position: func() string {
			if n == nil {
				return c.id
			}
			return n.shown.Load().position()
		},
		Service: func(name string) (any, error) { return nil, fmt.Errorf("a copy cannot use the service %s", name) },
	}
}

// playCollector keeps what a copy sends. It is safe for concurrent use.
type playCollector struct {
	mu   sync.Mutex
	kept flow.Batches
	left int
}

func (c *playCollector) take() flow.Batches {
	c.mu.Lock()
	defer c.mu.Unlock()
	return flow.Batches{Metrics: slices.Clone(c.kept.Metrics), Logs: slices.Clone(c.kept.Logs)}
}

// ConsumeMetrics keeps b.
func (c *playCollector) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	return c.keep(b.Len(), func() { c.kept.Metrics = append(c.kept.Metrics, b) })
}

// ConsumeLogs keeps b.
func (c *playCollector) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	return c.keep(b.Len(), func() { c.kept.Logs = append(c.kept.Logs, b) })
}

func (c *playCollector) keep(rows int, add func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left -= rows; c.left < 0 {
		return fmt.Errorf("the copy sends more than %d records", maxPlayRows)
	}
	add()
	return nil
}

// cutBuffer keeps the beginning of what is written to it. It is safe for concurrent use.
type cutBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	left int
}

// Write keeps what there is room for.
func (w *cutBuffer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := b[:min(len(b), w.left)]
	w.left -= len(kept)
	w.b.Write(kept)
	return len(b), nil
}

func (w *cutBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
