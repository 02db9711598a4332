package node

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// hookPoll is the hook of a source that is called at an interval, and the key
// of its timer.
const hookPoll = "poll"

// source is a component that creates data, or exports, from requests that it
// sends or receives.
type source struct {
	c      *Component
	runs   *pool             // of the hook run, which has its own VM; nil without it
	routes *routes           // nil without routes
	listen *server.Arguments // the node's own address; may be nil
}

func newSource(c *Component, a block.Arguments) (*source, error) {
	s, def := &source{c: c}, c.script.Definition
	if def.Poll {
		c.timers.add(beat{key: hookPoll, interval: a.Interval, hook: scripting.Hook{Name: hookPoll}, poll: true})
	}
	if def.Run {
		s.runs = c.pools.add() // used as long as run continues
	}
	if len(def.HTTP) > 0 {
		s.openRoutes()
		if !c.script.Outside.Manual {
			s.listen = a.Listen.Server()
		}
		if err := c.mem.listener.check(s.listen); err != nil {
			return nil, err
		}
	}
	if len(def.Exports) > 0 {
		c.mem.exports.declare(def.Exports, c.opts.Export)
	}
	return s, nil
}

// accept refuses a batch that was sent to an earlier instance of another kind.
func (s *source) accept(context.Context, payload) error { return s.c.admission.stoppedError() }

func (s *source) begin(context.Context) (end func()) { return func() {} }

// work runs poll, the hook run and the timers. Two instances must not do this
// at the same time.
func (s *source) work(life, run context.Context) {
	turn := s.c.mem.turn
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-life.Done():
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.c.timers.run(life, run) })
	wg.Go(func() {
		s.c.collect(run, &s.c.mem.going.box)
		if s.runs != nil {
			s.runUntilEnd(life, run)
		}
	})
	wg.Wait()
}

// finish ends the source, unless another instance continues it, and waits until
// requests are answered.
func (s *source) finish(run context.Context) {
	if cause := context.Cause(run); !errors.Is(cause, component.ErrReplaced) {
		s.end(run, errors.Is(cause, component.ErrRemoved))
	}
	if s.routes != nil {
		<-s.c.admission.close() // the duration of requests is limited
	}
}

// end sends the remaining records when the source stops. If its node was
// removed, it also ends the series that timers and poll sent, including those
// left by earlier instances. When weir stops, the next process continues the
// series. run is Run's context and has ended.
func (s *source) end(run context.Context, removed bool) {
	c := s.c
	c.mem.turn <- struct{}{} // its holder was replaced, and ends soon
	defer func() { <-c.mem.turn }()
	var wg sync.WaitGroup
	wg.Go(func() { c.collect(run, &c.mem.going.box) })
	for _, t := range c.mem.allTimers() {
		wg.Go(func() {
			if removed {
				c.timers.end(run, t)
			} else {
				c.collect(run, &t.box)
			}
		})
	}
	wg.Wait()
}

// endOfAll is the number of a version of the rules that produces no series.
const endOfAll = math.MaxUint64
