package file

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/files"
)

const (
	// maxWorkers limits the goroutines that read and send, without those that
	// wait for a file system that does not respond.
	maxWorkers = 64
	// maxHung limits the goroutines that wait for file systems, each of which
	// occupies a thread, and maxHungPlace those that wait for the same one.
	maxHung      = 192
	maxHungPlace = 16
	// maxFlying is the number of bytes of lines being sent above which only a few
	// workers may read more. Small batches are not limited, because receivers
	// write them to the disk together: the turns of a thousand files must not do
	// so one after the other.
	maxFlying = 4 << 20
	// stuckAfter is the duration of a turn after which another worker may take
	// its place.
	stuckAfter = time.Second
	// stopWithin is how long running turns may continue when weir stops.
	stopWithin = 2 * time.Second
	// saveEvery is the maximum time until finished ranges are written to the
	// positions log, and reportEvery the interval at which the page is updated.
	saveEvery   = time.Second
	reportEvery = time.Second
	// checkpointEvery is the minimum age of a valid checkpoint of the positions.
	checkpointEvery = time.Minute
	// sweepEvery is the interval at which positions of deleted files are removed.
	sweepEvery = 10 * time.Minute
)

// scheduler owns the followers and lends them to workers.
type scheduler struct {
	c   *Component
	set *settings

	all   map[string]*follower   // by the id of the target
	ended map[*follower]struct{} // followers whose targets were removed
	ready []*follower            // followers in the state queued
	busy  map[*follower]struct{} // followers in the state running

	jobs      chan *follower
	back      chan turnEnd
	resolved  chan resolution
	failed    chan error
	resolving resolveState
	matched   *Arguments // the arguments whose targets the followers have
	workers   int
	wg        sync.WaitGroup

	startFinished bool // all followers have taken over their positions
	ownLogged     bool // it was logged that files of weir are skipped
	checkpointing atomic.Bool
	done          timetable
	status        status
}

// timetable contains the times at which regular work was last done.
type timetable struct{ resolved, saved, reported, swept, checkpointed time.Time }

func newScheduler(c *Component) *scheduler {
	return &scheduler{
		c: c, all: map[string]*follower{}, ended: map[*follower]struct{}{}, busy: map[*follower]struct{}{},
		jobs: make(chan *follower, maxWorkers+maxHung), back: make(chan turnEnd, maxWorkers+maxHung), resolved: make(chan resolution, 1), failed: make(chan error, 1),
	}
}

// run works until ctx ends, and then ends the running turns.
func (s *scheduler) run(ctx context.Context) error {
	// When weir stops, batches that are being sent get some more time.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.resolve()
	tick := s.c.opts.Clock.NewTimer(s.period())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.stop(cancel)
			return nil
		case err := <-s.failed:
			s.stop(cancel)
			return err
		case <-s.c.changed:
			s.resolve()
		case r := <-s.resolved:
			s.reconcile(r)
		case end := <-s.back:
			s.endTurn(end)
		case <-tick.C():
			s.tick()
			tick.Reset(s.period())
		}
		s.dispatch(sending)
	}
}

// period is the time between two checks for followers that are due.
func (s *scheduler) period() time.Duration {
	w := s.c.arguments().FileWatch
	return min(max(min(w.MinPollFrequency, w.MaxPollFrequency), 5*time.Millisecond), time.Second)
}

// hasLeft reports whether the target of f was removed.
func (s *scheduler) hasLeft(f *follower) bool {
	_, ok := s.ended[f]
	return ok
}

func (s *scheduler) enqueue(f *follower) {
	if f.slot.queue() {
		s.ready = append(s.ready, f)
	}
}

// tick queues the followers that are due.
func (s *scheduler) tick() {
	now := s.c.opts.Clock.Now()
	due := func(f *follower) {
		if f.slot.isDue(now) {
			s.enqueue(f)
		}
	}
	for _, f := range s.all {
		due(f)
	}
	for f := range s.ended {
		due(f)
	}
	if a := s.c.arguments(); a.FileMatch.Enabled && now.Sub(s.done.resolved) >= a.FileMatch.SyncPeriod {
		s.resolve()
	}
	if s.done.swept.IsZero() {
		s.done.swept, s.done.checkpointed = now, now
	}
	if now.Sub(s.done.checkpointed) >= checkpointEvery && s.checkpointing.CompareAndSwap(false, true) {
		s.done.checkpointed = now
		s.wg.Go(func() {
			s.c.checkpoint()
			s.checkpointing.Store(false)
		})
	}
	if now.Sub(s.done.swept) >= sweepEvery && s.set != nil {
		s.done.swept = now
		s.wg.Go(s.c.removeOldPositions)
	}
	if now.Sub(s.done.saved) >= saveEvery {
		s.done.saved = now
		s.c.positions.save()
	}
	if now.Sub(s.done.reported) >= reportEvery {
		s.report(now)
		s.done.reported = now
		s.finishStart()
	}
}

// finishStart removes the imported positions file when all followers have their
// positions.
func (s *scheduler) finishStart() {
	if s.startFinished || s.set == nil {
		return
	}
	for _, f := range s.all {
		if f.slot.isRunning() || f.phase == starting {
			return
		}
	}
	s.startFinished = true
	s.c.dropLegacy()
}

// dispatch assigns ready followers to workers. Turns that take long do not count
// towards the limit, because they wait for a receiver or a file system. If many
// turns wait for a file system, the other files on it get no turn until it
// responds.
func (s *scheduler) dispatch(ctx context.Context) {
	now := s.c.opts.Clock.Now()
	limit := max(4, 2*runtime.GOMAXPROCS(0))
	if s.c.flying.Load() < maxFlying {
		limit = maxWorkers
	}
	if len(s.busy) >= limit {
		for f := range s.busy {
			if now.Sub(f.slot.started) >= stuckAfter {
				limit++
			}
		}
	}
	hung, places := s.countHung(now)
	limit = min(limit, maxWorkers) + min(hung, maxHung)
	for len(s.ready) > 0 && len(s.busy) < limit {
		f := s.ready[0]
		s.ready[0] = nil
		s.ready = s.ready[1:]
		if len(places) > 0 && places[files.Place(f.target.path)] >= maxHungPlace {
			f.slot.postpone(now.Add(stuckAfter))
			continue
		}
		f.slot.start(now)
		s.busy[f] = struct{}{}
		if s.workers < len(s.busy) {
			s.workers++
			s.wg.Go(func() {
				for f := range s.jobs {
					s.runTurn(ctx, f)
				}
			})
		}
		s.jobs <- f
	}
	if len(s.ready) == 0 {
		s.ready = nil // otherwise, the start of the slice would never be freed
	}
}

// countHung returns the number of turns that wait for a file system that does not
// respond, in total and by file system.
func (s *scheduler) countHung(now time.Time) (n int, places map[string]int) {
	for f := range s.busy {
		if f.calls.areOpen() && now.Sub(f.slot.started) >= stuckAfter {
			if places == nil {
				places = map[string]int{}
			}
			places[files.Place(f.target.path)]++
			n++
		}
	}
	return n, places
}

// runTurn runs one turn of f and returns it to the scheduler. A panic ends the
// component, which the engine then builds again.
func (s *scheduler) runTurn(ctx context.Context, f *follower) {
	end := turnEnd{f: f}
	defer func() {
		if v := recover(); v != nil {
			select {
			case s.failed <- fmt.Errorf("BUG: following %s panicked: %v\n%s", f.target.path, v, debug.Stack()):
			default:
			}
		}
		s.back <- end
	}()
	end.out = f.takeTurn(ctx)
}

// turnEnd is a follower that a worker returns, and the outcome of its turn.
type turnEnd struct {
	f   *follower
	out outcome
}

// endTurn takes a follower back after its turn.
func (s *scheduler) endTurn(end turnEnd) {
	f := end.f
	delete(s.busy, f)
	if shown := &f.slot.snapshot; shown.stale {
		*shown = snapshot{files: f.describe()}
	}
	f.slot.finish(end.out, f.set)
	if end.out == gone && s.hasLeft(f) {
		delete(s.ended, f)
		f.closeFiles()
		return
	}
	if end.out == more {
		s.enqueue(f)
	}
	if f.slot.retarget != nil || f.removed != s.hasLeft(f) {
		s.adjust(f)
	}
}

// stop waits for running turns, asks receivers that keep lines to send them, and
// closes all files.
func (s *scheduler) stop(cancel context.CancelFunc) {
	// Run's context has ended; running work gets this much time.
	ctx, done := context.WithTimeout(context.Background(), stopWithin)
	defer done()
	for len(s.busy) > 0 {
		select {
		case end := <-s.back:
			delete(s.busy, end.f)
		case <-ctx.Done():
			cancel()
			delete(s.busy, (<-s.back).f)
		}
	}
	close(s.jobs)
	s.c.acks.wait(ctx)
	cancel()
	s.wg.Wait()
	for _, f := range s.all {
		f.closeFiles()
	}
	for f := range s.ended {
		f.closeFiles()
	}
}
