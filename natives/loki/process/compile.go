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
	// compile compiles the stage. Validate has found all errors of the arguments.
	// It calls c.write before c.read: the stages are compiled from the last to
	// the first.
	compile(c *compiler) (stage, error)
}

// stage is a compiled stage. run does its work on all rows of a pass; it is
// called from several goroutines at once, with passes of different Sources.
type stage interface {
	run(ctx context.Context, p *pass)
}

// link is a stage and what comes after it, also beyond the pipeline that it is
// nested in.
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

// env is what stages get of their node.
type env struct {
	clock  clock.Clock
	logger *slog.Logger
	stats  *flow.Stats
	reg    prometheus.Registerer
	mem    *memory
}

// pipeline is the stages of one instance. It is immutable but for what they
// remember.
type pipeline struct {
	env
	of      []Stage
	first   *link
	names   []string // of the slots
	all     bool     // some stage reads values whose names are not known before
	holds   bool     // some stage keeps lines beyond a call
	derived []*derivation
	states  []*state
	groups  []*groups // of the stages that hold
	metrics []*customMetric
	geo     []*geoDB  // the databases that are read
	takes   []func()  // to be called when the pipeline is the current one
	sweeps  []func()  // that forget streams that ended
	scratch sync.Pool // of *pass
}

// compile returns the pipeline of stages. What stages keep is taken from old,
// which may be nil, where they are the same in both.
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

// same reports whether stages are those of the pipeline, and the files that they
// read.
func (pl *pipeline) same(stages []Stage) bool {
	if pl != nil && slices.ContainsFunc(pl.geo, (*geoDB).changed) {
		return false
	}
	return len(pl.of) == len(stages) && (len(stages) == 0 || reflect.DeepEqual(pl.of, stages))
}

// Sweep forgets streams that ended or are not used any more.
func (pl *pipeline) Sweep() {
	for _, d := range pl.derived {
		d.removeUnused()
	}
	for _, sweep := range pl.sweeps {
		sweep()
	}
	pl.mem.custom.removeIdle()
}

// Close gives back the streams that were made.
func (pl *pipeline) Close() {
	for _, d := range pl.derived {
		d.close()
	}
}

// compiler goes through stages from the last to the first, so that each knows
// what the ones after it ask for.
type compiler struct {
	env
	pl    *pipeline
	slots map[string]int // of the names that stages asked for so far
	after *link          // of the stage that is being made
	old   []*state       // of the instance before, that nobody took yet
}

// nested compiles the stages of a block, which go on with what comes after the
// stage that it belongs to.
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

// read asks for an extracted value and returns its slot.
func (c *compiler) read(name string) int {
	slot, ok := c.slots[name]
	if !ok {
		slot = len(c.pl.names)
		c.slots[name] = slot
		c.pl.names = append(c.pl.names, name)
	}
	return slot
}

// readAll asks for all values, whatever their names.
func (c *compiler) readAll() { c.pl.all = true }

// write returns the slot for a value that is extracted under a name; wanted is
// false if no stage after this one reads it, and then it need not be extracted.
func (c *compiler) write(name string) (slot int, wanted bool) {
	if c.pl.all {
		return c.read(name), true
	}
	slot, wanted = c.slots[name]
	return slot, wanted
}

// derive registers a function that makes other labels of a stream's, and is
// asked once for each stream and values. It may run at any time.
func (c *compiler) derive(edit func(b *batch.Builder, values []value)) *derivation {
	d := &derivation{edit: edit}
	d.memo.Evicted = func(_ *batch.Stream, vs *variants) { d.forget(vs) }
	c.pl.derived = append(c.pl.derived, d)
	return d
}

// state is what a stage keeps over reloads.
type state struct {
	key any
	v   any
}

// keepState returns what a stage keeps: what the stage with an equal key had in the
// instance before, else what made returns. Of stages with equal keys the last
// gets what the last had.
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

// source returns the slot of what a stage reads instead of the line, negative
// for the line.
func (c *compiler) source(name string) int {
	if name == "" {
		return -1
	}
	return c.read(name)
}
