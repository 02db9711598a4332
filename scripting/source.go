package scripting

import (
	"context"
	"math"
	"sync"
)

// hookPoll is the hook of a source that is called every interval, and the key of
// its timer.
const hookPoll = "poll"

// openSource makes what a component has because it is a source.
func (c *Component) openSource(a arguments) error {
	def := c.script.def
	if def.Poll {
		c.beats = append(c.beats, beat{key: hookPoll, interval: a.interval, hook: Hook{Name: hookPoll}, poll: true})
	}
	jobs := []func(life, run context.Context){c.runTimers}
	if def.Run {
		c.runs = newPool(1, 0, c.pool.make) // it is lent as long as run goes on
		c.pools = append(c.pools, c.runs)
		jobs = append(jobs, c.runRun)
	} else {
		jobs = append(jobs, func(_, run context.Context) { c.collect(run, &c.mem.going.box) })
	}
	c.jobs = append(c.jobs, func(life, run context.Context) { c.inTurn(life, run, jobs) })
	if len(def.HTTP) > 0 {
		c.openRoutes()
		if !c.script.outside.Manual {
			c.listen = a.listen.server()
		}
		if err := c.mem.listener.check(c.listen); err != nil {
			return err
		}
	}
	if len(def.Exports) > 0 {
		c.mem.exports.declare(def.Exports, c.opts.Export)
	}
	return nil
}

// inTurn runs jobs of which two instances must not be at work at a time.
func (c *Component) inTurn(life, run context.Context, jobs []func(life, run context.Context)) {
	select {
	case c.mem.turn <- struct{}{}:
		defer func() { <-c.mem.turn }()
	case <-life.Done():
		return
	}
	var wg sync.WaitGroup
	for _, job := range jobs {
		wg.Go(func() { job(life, run) })
	}
	wg.Wait()
}

// endSource sends what is left to be sent when the source stops. If its node was
// removed, it also ends the series that timers and poll sent, of this instance
// and of those before it that left that to it; when weir stops, the next process
// continues them. run is Run's context and has ended.
func (c *Component) endSource(run context.Context, removed bool) {
	c.mem.turn <- struct{}{} // who has it was replaced, and ends soon
	defer func() { <-c.mem.turn }()
	var wg sync.WaitGroup
	wg.Go(func() { c.collect(run, &c.mem.going.box) })
	for _, t := range c.mem.allTimers() {
		wg.Go(func() {
			if removed {
				c.endTimer(run, t)
			} else {
				c.collect(run, &t.box)
			}
		})
	}
	wg.Wait()
}

// endOfAll is an instance of rules by which nothing comes any more.
const endOfAll = math.MaxUint64
