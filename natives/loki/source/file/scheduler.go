package file

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
)

const (
	// maxWorkers bounds the goroutines that read and send.
	maxWorkers = 64
	// maxFlying is how many bytes of lines are under way until only few workers
	// may read more. Small batches wait for others, which their receivers write
	// to the disk with them: the turns of a thousand files must not do so one
	// after the other.
	maxFlying = 4 << 20
	// stuckAfter is how long a turn takes until another worker may stand in.
	stuckAfter = time.Second
	// stopWithin is how long what is under way may take when weir stops.
	stopWithin = 2 * time.Second
	// The pauses between attempts to send what was refused double from minHold to maxHold.
	minHold = 100 * time.Millisecond
	maxHold = 5 * time.Second
	// saveEvery is how often what is done is written to the positions log at
	// the latest, and reportEvery how often the page learns of it.
	saveEvery   = time.Second
	reportEvery = time.Second
	// sweepEvery is how often positions of files that are gone are forgotten.
	sweepEvery = 10 * time.Minute
	// A receiver that does not answer is asked again after minPatience, which
	// doubles up to maxPatience: who waits for it sees no rotation.
	minPatience = 5 * time.Second
	maxPatience = time.Minute
	// maxInflaters bounds the decompressors, which may take megabytes each.
	maxInflaters = 8
)

// settings are the arguments that a follower needs.
type settings struct {
	coding             *coding
	format             Format // "" when files are not compressed
	delay              time.Duration
	tailFromEnd        bool
	onError            OnPositionsFileError
	minPause, maxPause time.Duration
	encoding           string
}

func newSettings(a *Arguments) *settings {
	coding, err := encodingOf(a.Encoding)
	if err != nil {
		coding = plain // Validate has refused it
	}
	s := &settings{
		coding: coding, encoding: a.Encoding, tailFromEnd: a.TailFromEnd, onError: a.OnPositionsFileError,
		minPause: min(a.FileWatch.MinPollFrequency, a.FileWatch.MaxPollFrequency), maxPause: a.FileWatch.MaxPollFrequency,
	}
	if a.Decompression.Enabled {
		s.format, s.delay = a.Decompression.Format, a.Decompression.InitialDelay
	}
	return s
}

// scheduler has the followers and lends them to workers.
type scheduler struct {
	c   *Component
	set *settings

	all   map[string]*follower // by the id of the target
	ended []*follower          // whose targets left
	ready []*follower
	busy  map[*follower]struct{}

	jobs, back chan *follower
	resolved   chan resolution
	failed     chan error
	resolving  bool
	again      bool // the arguments changed while resolving
	workers    int
	wg         sync.WaitGroup

	begun              bool // the targets are known, and all have begun
	synced             time.Time
	saved, shown       time.Time
	swept              time.Time
	troubles, reported string
}

type resolution struct {
	args     *Arguments
	targets  []target
	troubles []string
}

func newScheduler(c *Component) *scheduler {
	return &scheduler{
		c: c, all: map[string]*follower{}, busy: map[*follower]struct{}{},
		jobs: make(chan *follower, maxWorkers), back: make(chan *follower, maxWorkers), resolved: make(chan resolution, 1), failed: make(chan error, 1),
	}
}

// run works until ctx ends, and then ends what is under way.
func (s *scheduler) run(ctx context.Context) error {
	// What is being sent when weir stops has some time left.
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
		case f := <-s.back:
			s.returned(f)
		case <-tick.C():
			s.tick()
			tick.Reset(s.period())
		}
		s.dispatch(sending)
	}
}

// period is how often is looked whether a follower is due.
func (s *scheduler) period() time.Duration {
	w := s.c.arguments().FileWatch
	return min(max(min(w.MinPollFrequency, w.MaxPollFrequency), 5*time.Millisecond), time.Second)
}

// resolve begins to find the targets.
func (s *scheduler) resolve() {
	if s.resolving {
		s.again = true
		return
	}
	s.resolving, s.again = true, false
	now := s.c.opts.Clock.Now()
	s.synced = now
	s.wg.Go(func() {
		a := s.c.arguments()
		ts, troubles := resolve(a, now)
		s.resolved <- resolution{a, ts, troubles}
	})
}

// reconcile makes the followers those of the targets.
func (s *scheduler) reconcile(r resolution) {
	s.resolving = false
	set := newSettings(r.args)
	same := s.set != nil && *set == *s.set
	if same {
		set = s.set
	}
	s.set, s.troubles = set, strings.Join(r.troubles, "; ")
	want := make(map[string]bool, len(r.targets))
	for i := range r.targets {
		want[r.targets[i].id()] = true
	}
	s.c.mu.Lock()
	s.c.wanted = want
	s.c.mu.Unlock()

	left := map[string][]*follower{} // by path
	for id, f := range s.all {
		if !want[id] {
			left[f.target.path] = append(left[f.target.path], f)
			delete(s.all, id)
		}
	}
	now := s.c.opts.Clock.Now()
	for _, t := range r.targets {
		if f := s.all[t.id()]; f != nil {
			if f.set != set {
				f.retarget = &t
			}
		} else if fs := left[t.path]; len(fs) > 0 {
			f, left[t.path] = fs[0], fs[1:]
			f.retarget = &t
			s.all[t.id()] = f
		} else if f := s.returning(t); f != nil {
			f.leaving = false
			s.all[t.id()] = f
		} else {
			f := newFollower(s.c, set, t)
			f.due = now
			s.all[t.id()] = f
			s.enqueue(f)
			continue
		}
		s.adjust(s.all[t.id()])
	}
	for _, fs := range left {
		for _, f := range fs {
			if !s.isBusy(f) { // else it comes back, and is adjusted then
				f.pause, f.due = set.minPause, now
			}
			s.ended = append(s.ended, f)
			s.adjust(f)
		}
	}
	if s.again {
		s.resolve()
	}
}

// returning returns the follower of a target that left and is not ended, if it
// comes back.
func (s *scheduler) returning(t target) *follower {
	i := slices.IndexFunc(s.ended, func(f *follower) bool { return f.target.id() == t.id() })
	if i < 0 || s.isBusy(s.ended[i]) {
		return nil
	}
	f := s.ended[i]
	s.ended = slices.Delete(s.ended, i, i+1)
	return f
}

func (s *scheduler) isBusy(f *follower) bool {
	_, ok := s.busy[f]
	return ok
}

// adjust makes a follower that no worker has what it is to be.
func (s *scheduler) adjust(f *follower) {
	if s.isBusy(f) {
		return // when it comes back
	}
	if f.retarget != nil {
		f.become(s.set, *f.retarget)
		f.retarget = nil
	}
	f.leaving = slices.Contains(s.ended, f)
	s.enqueue(f)
}

func (s *scheduler) enqueue(f *follower) {
	if !f.queued {
		f.queued = true
		s.ready = append(s.ready, f)
	}
}

// tick makes ready who is due.
func (s *scheduler) tick() {
	now := s.c.opts.Clock.Now()
	due := func(f *follower) {
		if !s.isBusy(f) && !f.due.After(now) {
			s.enqueue(f)
		}
	}
	for _, f := range s.all {
		due(f)
	}
	for _, f := range s.ended {
		due(f)
	}
	if a := s.c.arguments(); a.FileMatch.Enabled && now.Sub(s.synced) >= a.FileMatch.SyncPeriod {
		s.resolve()
	}
	if s.swept.IsZero() {
		s.swept = now
	}
	if now.Sub(s.swept) >= sweepEvery && s.set != nil {
		s.swept = now
		s.wg.Go(s.c.sweep)
	}
	if now.Sub(s.saved) >= saveEvery {
		s.saved = now
		s.c.positions.save()
	}
	if now.Sub(s.shown) >= reportEvery {
		s.report(now)
		s.shown = now
		s.begin()
	}
}

// begin notes when all followers have taken over what is known of their files.
func (s *scheduler) begin() {
	if s.begun || s.set == nil {
		return
	}
	for _, f := range s.all {
		if s.isBusy(f) || !f.began {
			return
		}
	}
	s.begun = true
	s.c.dropLegacy()
}

// dispatch gives ready followers to workers. Turns that take long do not count
// among those that may run: they wait for a receiver or a file system.
func (s *scheduler) dispatch(ctx context.Context) {
	now := s.c.opts.Clock.Now()
	limit := max(4, 2*runtime.GOMAXPROCS(0))
	if s.c.flying.Load() < maxFlying {
		limit = maxWorkers
	}
	if len(s.busy) >= limit {
		for f := range s.busy {
			if now.Sub(f.started) >= stuckAfter {
				limit++
			}
		}
	}
	limit = min(limit, maxWorkers)
	for len(s.ready) > 0 && len(s.busy) < limit {
		f := s.ready[0]
		s.ready[0] = nil
		s.ready = s.ready[1:]
		f.queued = false
		f.started = now
		s.busy[f] = struct{}{}
		if s.workers < len(s.busy) {
			s.workers++
			s.wg.Go(func() {
				for f := range s.jobs {
					s.lend(ctx, f)
				}
			})
		}
		s.jobs <- f
	}
	if len(s.ready) == 0 {
		s.ready = nil // or its start would stay for ever
	}
}

// lend lets f have its turn and gives it back. A panic ends the component, which
// the engine builds anew.
func (s *scheduler) lend(ctx context.Context, f *follower) {
	defer func() {
		if v := recover(); v != nil {
			select {
			case s.failed <- fmt.Errorf("BUG: following %s panicked: %v\n%s", f.target.path, v, debug.Stack()):
			default:
			}
		}
		s.back <- f
	}()
	f.out = f.turn(ctx)
}

// returned takes a follower back after its turn.
func (s *scheduler) returned(f *follower) {
	delete(s.busy, f)
	now := f.started
	switch f.out {
	case more:
		f.pause = f.set.minPause
		s.enqueue(f)
	case crowded:
		f.due = now
	case gone:
		if i := slices.Index(s.ended, f); i >= 0 {
			s.ended = slices.Delete(s.ended, i, i+1)
			f.close()
			return
		}
	default:
		f.due = now.Add(f.pause)
		f.pause = min(2*f.pause, f.set.maxPause)
	}
	if f.retarget != nil || f.leaving != slices.Contains(s.ended, f) {
		s.adjust(f)
	}
}

// stop waits for what is under way, asks those who keep lines to send them, and
// closes all files.
func (s *scheduler) stop(cancel context.CancelFunc) {
	// Run's context has ended; what was begun has this long.
	ctx, done := context.WithTimeout(context.Background(), stopWithin)
	defer done()
	for len(s.busy) > 0 {
		select {
		case f := <-s.back:
			delete(s.busy, f)
		case <-ctx.Done():
			cancel()
			delete(s.busy, <-s.back)
		}
	}
	close(s.jobs)
	s.c.receipts.wait(ctx)
	cancel()
	s.wg.Wait()
	for _, f := range s.all {
		f.close()
	}
	for _, f := range s.ended {
		f.close()
	}
}

// report tells the page, the metrics and the health how things are. A follower
// that a worker has tells what it did last time.
func (s *scheduler) report(now time.Time) {
	info := make([]followerInfo, 0, len(s.all)+len(s.ended))
	var files, unmet int
	var lag int64
	troubles := s.troubles
	show := func(f *follower) {
		if !s.isBusy(f) {
			f.known = f.describe()
		}
		for _, i := range f.known {
			info = append(info, i)
			if i.File != "" {
				files++
			}
			if i.Size > i.Offset {
				lag += i.Size - i.Offset
			}
		}
		if len(f.known) > 0 && f.known[0].Error != "" {
			unmet++
			if troubles == "" {
				troubles = f.known[0].Error
			}
		}
	}
	for _, f := range s.all {
		show(f)
	}
	for _, f := range s.ended {
		show(f)
	}
	slices.SortStableFunc(info, func(a, b followerInfo) int {
		return strings.Compare(a.Path+a.Labels, b.Path+b.Labels)
	})
	s.c.metrics.files.Set(float64(files))
	s.c.metrics.unmet.Set(float64(unmet))
	s.c.metrics.lag.Set(float64(lag))
	s.c.metrics.held.Set(float64(s.c.held.Load()))
	s.c.mu.Lock()
	s.c.info = info
	s.c.mu.Unlock()
	if first := s.shown.IsZero(); first || troubles != s.reported {
		s.reported = troubles
		h := component.Health{State: component.Healthy, Message: "all files are followed", Time: now}
		if troubles != "" {
			h.State, h.Message = component.Unhealthy, troubles
		}
		s.c.opts.Health(h)
	}
}

// turn is one look at the path, and at most one batch.
func (f *follower) turn(ctx context.Context) outcome {
	now := f.c.opts.Clock.Now()
	err := f.look(now)
	out := idle
	if f.refused != nil {
		out = f.resend(ctx, now)
	} else {
		var readErr error
		out, readErr = f.read(ctx, now)
		err = errors.Join(err, readErr)
	}
	f.tell(err)
	return out
}

// resend sends again what was refused, if it is time. Nothing is read meanwhile,
// and rotations are seen nevertheless.
func (f *follower) resend(ctx context.Context, now time.Time) outcome {
	if !now.Before(f.retryAt) {
		if f.again(ctx) {
			f.hold, f.patient = minHold, minPatience
			return more
		}
		f.wait(now)
	}
	f.keepTrack(now)
	return idle
}

// wait says when what was refused is sent again.
func (f *follower) wait(now time.Time) {
	f.c.metrics.refusals.Inc()
	f.retryAt = now.Add(f.hold)
	f.hold = min(2*f.hold, maxHold)
	f.pause = f.set.minPause
}

// read reads and sends one batch.
func (f *follower) read(ctx context.Context, now time.Time) (outcome, error) {
	g, whole := f.pick(now)
	if g == nil {
		if f.leaving && len(f.gens) == 0 {
			return gone, nil
		}
		return idle, nil
	}
	if f.c.held.Load() > maxHeld {
		f.keepTrack(now)
		return crowded, nil
	}
	if g.in != nil && !f.c.inflaters.enter(g.in) {
		return crowded, nil
	}
	c, ok, err := g.next(chunkSize, whole)
	if g.in != nil && (g.ended || err != nil) {
		f.c.inflaters.leave(g.in)
	}
	if err != nil {
		return f.readable(g, err, now)
	}
	f.c.metrics.holes.Add(float64(c.holes))
	switch {
	case ok && c.to > c.from:
		if !f.send(ctx, g, c) {
			f.wait(now)
			return idle, nil
		}
		return more, nil
	case ok:
		return more, nil
	}
	return idle, g.broken
}

// tell logs what keeps a follower from its work, once as long as it is the same.
func (f *follower) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == f.trouble {
		return
	}
	if f.trouble = text; isStarved(err) {
		if !f.c.starved.Swap(true) {
			f.c.opts.Logger.Warn("cannot open all files, the process has too many open; it is tried again: raise its limit (LimitNOFILE, ulimit -n)", "path", f.target.path, "err", err)
		}
	} else if text != "" {
		f.c.opts.Logger.Warn("cannot follow a file; it is tried again", "path", f.target.path, "err", err)
	} else {
		f.c.opts.Logger.Info("a file is followed again", "path", f.target.path)
	}
}

// describe returns what is to be shown of the follower.
func (f *follower) describe() (infos []followerInfo) {
	base := followerInfo{Path: f.target.path, Labels: f.target.key, Refused: f.refused != nil, Error: f.trouble}
	if len(f.gens) == 0 {
		return append(infos, base)
	}
	for _, g := range f.gens {
		i := base
		i.File, i.Offset, i.Size, i.Acked = g.real, g.offset, g.size, f.c.positions.acknowledged(g.pos)
		if g.in != nil && !g.ended {
			i.Size = 0 // nobody knows
		}
		i.Rotated = g != f.at()
		infos = append(infos, i)
	}
	return infos
}

// become makes the follower that of another target of the same path, or with
// other settings. It goes on where it is.
func (f *follower) become(set *settings, t target) {
	old := f.set
	f.set = set
	if t.key != f.target.key {
		for _, g := range f.gens {
			f.c.owns.release(f, g.id)
		}
		f.c.positions.rekey(f.target.path, f.target.key, t.key)
		f.target = t
		for _, g := range f.gens {
			f.c.owns.take(f, g.id)
		}
		f.stream.Release()
		f.stream = newStream(t)
	}
	if old.encoding == set.encoding && old.format == set.format {
		return
	}
	for _, g := range f.gens {
		g.coding, g.actual, g.scanned = set.coding, nil, 0
	}
	if old.format != set.format {
		// Offsets of what is compressed are others: what is at the path begins anew.
		for len(f.gens) > 0 {
			f.finish(0)
		}
	}
}
