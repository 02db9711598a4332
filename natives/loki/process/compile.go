package process

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// stageArguments are the arguments of a stage.
type stageArguments interface {
	// compile compiles the stage. Validate has already found all errors in the
	// arguments. compile calls c.write before c.read, because the stages are
	// compiled from the last to the first.
	compile(c *compiler) (stage, error)
}

// stage is a compiled stage. run processes all rows of a pass. Several goroutines
// call it at once, with passes of different Sources.
type stage interface {
	run(ctx context.Context, p *pass)
}

// link is a stage and the stages that follow it, including those that follow the
// block in which it is nested.
type link struct {
	stage stage
	next  *link
}

func (l *link) run(ctx context.Context, p *pass) {
	l.runUntil(ctx, p, nil)
}

// runUntil runs the stages before end.
func (l *link) runUntil(ctx context.Context, p *pass, end *link) {
	for ; l != end && len(p.rows) > 0; l = l.next {
		l.stage.run(ctx, p)
		if len(p.slow) > 0 {
			p.dropSlow()
		}
	}
}

// env is the part of the node that its stages can use.
type env struct {
	clock  clock.Clock
	logger *slog.Logger
	stats  *flow.Stats
	reg    prometheus.Registerer
	mem    *memory
}

// pipeline is the compiled stages of one component. It is immutable except for
// the state of the stages.
type pipeline struct {
	env
	of      []Stage
	first   *link
	names   []string // by slot
	all     bool     // a stage reads values whose names are only known at run time
	holds   bool     // a stage keeps lines after a call has returned
	derived []*derivation
	states  []*state
	groups  []*groups // of the stages that keep lines
	metrics []*customMetric
	geo     []*geoDB  // the databases that the stages read
	takes   []func()  // called when the pipeline becomes the current one
	sweeps  []func()  // remove the data of streams that have ended
	scratch sync.Pool // *pass values
}

// compile returns the pipeline of stages. If old is not nil, stages that are
// equal in old take over its state.
func compile(e env, stages []Stage, old *pipeline) (*pipeline, error) {
	pl := &pipeline{env: e, of: stages}
	c := &compiler{env: e, pl: pl, slots: map[string]int{}}
	if old != nil {
		c.old = slices.Clone(old.states)
	}
	var err error
	if pl.first, err = c.nested(stages); err != nil {
		return nil, err
	}
	pl.scratch.New = func() any { return &pass{pl: pl, slots: make([][]value, len(pl.names))} }
	return pl, nil
}

// same reports whether the pipeline was compiled from equal stages and the files
// that it read have not changed.
func (pl *pipeline) same(stages []Stage) bool {
	if pl != nil && slices.ContainsFunc(pl.geo, (*geoDB).changed) {
		return false
	}
	return len(pl.of) == len(stages) && (len(stages) == 0 || reflect.DeepEqual(pl.of, stages))
}

// Sweep removes the data of streams that have ended or are not used any more.
func (pl *pipeline) Sweep() {
	for _, d := range pl.derived {
		d.removeUnused()
	}
	for _, sweep := range pl.sweeps {
		sweep()
	}
	pl.mem.custom.removeIdle()
}

// Close releases the streams that the pipeline created.
func (pl *pipeline) Close() {
	for _, d := range pl.derived {
		d.close()
	}
}

// compiler compiles the stages from the last to the first, so that each stage
// knows which values the stages after it read.
type compiler struct {
	env
	pl    *pipeline
	slots map[string]int // of the names that stages have read so far
	after *link          // the stages after the one that is being compiled
	old   []*state       // of the previous pipeline, not taken over yet
}

// nested compiles the stages of a block. After its last stage, rows continue with
// the stage that follows the block.
func (c *compiler) nested(stages []Stage) (*link, error) {
	first := c.after
	defer func(after *link) { c.after = after }(c.after)
	for i := len(stages) - 1; i >= 0; i-- {
		s, err := stages[i].arguments().compile(c)
		if err != nil {
			return nil, fmt.Errorf("cannot make stage %d: %w", i+1, err)
		}
		first = &link{s, first}
		c.after = first
	}
	return first, nil
}

// read declares that a stage reads an extracted value and returns the slot of the
// value.
func (c *compiler) read(name string) int {
	slot, ok := c.slots[name]
	if !ok {
		slot = len(c.pl.names)
		c.slots[name] = slot
		c.pl.names = append(c.pl.names, name)
	}
	return slot
}

// readAll declares that a stage reads all extracted values.
func (c *compiler) readAll() { c.pl.all = true }

// write returns the slot for a value that a stage extracts. If wanted is false,
// no stage after this one reads the value, and it need not be extracted.
func (c *compiler) write(name string) (slot int, wanted bool) {
	if c.pl.all {
		return c.read(name), true
	}
	slot, wanted = c.slots[name]
	return slot, wanted
}

// derive registers edit, which changes the labels of a stream depending on some
// extracted values. It is called once for each combination of stream and values,
// at any time.
func (c *compiler) derive(edit func(b *batch.Builder, values []value)) *derivation {
	d := &derivation{edit: edit}
	d.memo.Evicted = func(_ *batch.Stream, vs *variants) { d.forget(vs) }
	c.pl.derived = append(c.pl.derived, d)
	return d
}

// state is the state of a stage that survives reloads.
type state struct {
	key any
	v   any
}

// keepState returns the state of a stage. If the previous pipeline has a stage
// with an equal key, its state is taken over; otherwise, made creates a new
// state. If several stages have equal keys, they are matched from the last to the
// first.
func keepState[S any](c *compiler, key any, made func() S) S {
	for i := len(c.old) - 1; i >= 0; i-- {
		if s, ok := c.old[i].v.(S); ok && reflect.DeepEqual(c.old[i].key, key) {
			c.pl.states = slices.Insert(c.pl.states, 0, c.old[i])
			c.old = slices.Delete(c.old, i, i+1)
			return s
		}
	}
	v := made()
	c.pl.states = slices.Insert(c.pl.states, 0, &state{key, v})
	return v
}

// source returns the slot of the value that a stage reads instead of the line, or
// a negative number for the line.
func (c *compiler) source(name string) int {
	if name == "" {
		return -1
	}
	return c.read(name)
}
