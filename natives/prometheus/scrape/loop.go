package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// tolerance is how late a scrape may start and still bear the time it was due,
// which makes timestamps compress better. At most 1 % of the interval.
const tolerance = 2 * time.Millisecond

// grace is how long a batch may still take when weir stops or the target is
// removed.
const grace = 5 * time.Second

// Why a loop ends.
var (
	errRemoved    = errors.New("target was removed")
	errStopped    = errors.New("scraping was stopped")
	errHandedOver = errors.New("target goes on elsewhere")
)

// The pauses between attempts to send what was refused double from minPause to maxPause.
const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

var (
	errTimeout = fmt.Errorf("scrape timeout: %w", context.DeadlineExceeded)
	errDue     = errors.New("the next scrape is due")
)

// job is what a loop does: the target, and how.
type job struct {
	*target
	set *settings
}

// state is what belongs to a target as long as it is scraped, whichever
// component does. Only the loop that runs for it touches it.
type state struct {
	source uint64
	c      *cache
	set    *settings // of the last scrape, nil before the first
	next   time.Time // when it is scraped next, zero before the loop has run
	period time.Duration
	sentT  int64 // time of the last scrape, Unix ms

	report     [reportRows]*batch.Series
	reportMeta bool
	reportLen  int // how many of them were sent last

	// owed are handles whose staleness marker was in a batch that was dropped.
	owed      []*batch.Series
	owedSince time.Time
}

func newState() *state { return &state{source: batch.NewSource(), c: newCache()} }

// loop scrapes one target.
type loop struct {
	*state
	clock   clock.Clock
	log     *slog.Logger
	metrics *metrics
	stats   *flow.Stats

	job    atomic.Pointer[job]
	wake   chan struct{} // holds a signal when job was changed
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the goroutine is gone

	mu      sync.Mutex
	last    time.Time
	took    time.Duration
	samples int
	err     error
}

// run scrapes until ctx ends, and then, depending on its cause, ends the
// series.
func (l *loop) run(ctx context.Context) {
	j := l.job.Load()
	now := l.clock.Now()
	if l.next.IsZero() {
		l.next = j.first(now)
		l.period = j.interval
	}
	timer := l.clock.NewTimer(l.next.Sub(now))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errHandedOver) {
				l.end(ctx)
			}
			return
		case <-l.wake:
			if j := l.job.Load(); j.interval != l.period {
				l.period = j.interval
				l.next = j.slot(l.clock.Now())
			}
		case <-timer.C():
			if ctx.Err() == nil { // both may be ready
				l.scrape(ctx)
			}
		}
		timer.Reset(l.next.Sub(l.clock.Now()))
	}
}

// scrape scrapes once and sets the time of the next scrape.
func (l *loop) scrape(ctx context.Context) {
	j := l.job.Load()
	start := l.clock.Now()
	at, first := l.next, l.set == nil
	if late := start.Sub(at); late < 0 || late > min(tolerance, j.interval/100) {
		at = start
	}
	l.next = j.slot(at)
	if first && l.next.Sub(at) < j.interval/2 {
		l.next = j.slot(l.next) // the first scrape is not at the target's place
	}
	if l.set != nil && l.set != j.set && !l.set.samplesAs(j.set) {
		l.c.forget()
	}
	l.set = j.set

	b := bodies.Get().(*body)
	defer b.free()
	contentType, err := l.fetch(ctx, j, b)
	if ctx.Err() != nil {
		return // as if it had not begun
	}
	rep := report{timeout: j.timeout.Seconds(), sampleLimit: j.set.cfg.SampleLimit}
	switch {
	case err == nil:
		rep.bytes = len(b.buf)
		l.metrics.bytes.Add(float64(rep.bytes))
	case errors.Is(err, errBodySizeLimit):
		rep.bytes = -1
	}
	in := l.intake(j, at)
	if err != nil {
		in.empty()
	} else if err = in.body(b.buf, contentType); err != nil {
		rep.scraped, rep.added, rep.seriesAdded = in.total, in.added, in.seriesAdded
		in = l.intake(j, at)
		in.empty()
	} else {
		rep.scraped, rep.added, rep.seriesAdded = in.total, in.added, in.seriesAdded
		l.stats.Drop("duplicate", in.repeated)
		l.stats.Drop("too_far_ahead", in.ahead)
	}
	took := l.clock.Now().Sub(start)
	rep.up, rep.seconds = err == nil, took.Seconds()
	l.note(j, start, took, rep.scraped, err)
	l.deliver(ctx, in, rep, at)
	if now := l.clock.Now(); !l.next.After(now) {
		l.next = j.slot(now)
	}
}

func (l *loop) intake(j *job, at time.Time) *intake {
	return &intake{
		set: j.set, opts: j.parserOptions(j.set), tags: j.tags, c: l.c,
		now: at.UnixMilli(), maxT: l.clock.Now().UnixMilli() + maxAhead,
	}
}

func (l *loop) fetch(ctx context.Context, j *job, into *body) (contentType string, err error) {
	if j.set.limitErr != nil {
		return "", j.set.limitErr
	}
	ctx, stop := l.within(ctx, j.timeout, 0, errTimeout)
	defer stop()
	contentType, err = j.set.fetch(ctx, j.target, into)
	if err == nil {
		return contentType, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		err = cause
	}
	if j.set.failures != nil {
		j.set.failures.With("target", j.url).Error(err.Error())
	}
	return "", err
}

// note keeps how a scrape went, and logs when that is not as before.
func (l *loop) note(j *job, start time.Time, took time.Duration, samples int, err error) {
	l.metrics.scrapes.WithLabelValues(outcome(err)).Inc()
	l.mu.Lock()
	was := l.err
	l.last, l.took, l.samples, l.err = start, took, samples, err
	l.mu.Unlock()
	switch {
	case err != nil && was == nil:
		l.log.Warn("scrape failed", "target", j.redacted, "err", err)
	case err == nil && was != nil:
		l.log.Info("target is scraped again", "target", j.redacted)
	}
}

func outcome(err error) string {
	var status statusError
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, errTimeout):
		return outcomeTimeout
	case errors.Is(err, errBodySizeLimit):
		return outcomeBodySize
	case errors.Is(err, errSampleLimit):
		return outcomeSampleLimit
	case errors.Is(err, errBucketLimit):
		return outcomeBucketLimit
	case errors.Is(err, errLabelLimit):
		return outcomeLabelLimit
	case errors.Is(err, errTargetLimit):
		return outcomeTargetLimit
	case errors.As(err, &status):
		return outcomeStatus
	case errors.Is(err, errInvalidBody):
		return outcomeInvalid
	}
	return outcomeFailed
}

// deliver makes the batch of a scrape and sends it.
func (l *loop) deliver(ctx context.Context, in *intake, rep report, at time.Time) {
	n := reportRowsFor(l.set)
	if l.report[0] == nil || l.reportMeta != l.set.args.HonorMetadata {
		l.release(l.report[:]...)
		l.report = reportSeries(in.tags, l.set.args.HonorMetadata)
		l.reportMeta = l.set.args.HonorMetadata
		if lo := l.c.layout; lo != nil {
			lo.column = nil
		}
	}
	r := &in.rows
	if in.wholly {
		r.series = l.c.layout.columns(l.set, l.report[:n])
	}
	for i, v := range rep.values() {
		if i == n {
			break
		}
		if !in.wholly {
			r.series = append(r.series, l.report[i])
		}
		r.t = append(r.t, in.now)
		r.v = append(r.v, v)
	}
	for i := n; i < l.reportLen; i++ { // extra_metrics was switched off
		r.add(l.report[i], in.now, batch.Stale())
	}
	l.reportLen = n
	l.addOwed(r, in.now, at)
	l.sentT = in.now
	b := r.batch(l.source)
	if l.send(ctx, b, l.next) {
		l.settle()
	} else {
		l.owe(b, at)
	}
}

// batch returns the rows as a batch; they are not to be used any more.
func (r *rows) batch(source uint64) *batch.Metrics {
	return &batch.Metrics{
		Source: source, Series: r.series, T: r.t, V: r.v,
		Histograms: r.histograms, Exemplars: r.exemplars,
	}
}

// columns returns the series of a batch that is wholly of this layout. It is
// the same slice every time; nobody writes to it or behind it.
func (lo *layout) columns(s *settings, report []*batch.Series) []*batch.Series {
	if lo.column == nil || len(lo.column) != lo.rows+len(report) || lo.columnFor != s {
		lo.column = make([]*batch.Series, 0, lo.rows+len(report))
		for i := range lo.lines {
			if lo.lines[i].flags&lineRepeated == 0 {
				lo.column = append(lo.column, lo.lines[i].l.s.h)
			}
		}
		lo.column = append(lo.column, report...)
		lo.columnFor = s
	}
	return lo.column[:len(lo.column):len(lo.column)]
}

// end sends markers for all that the target's series showed last.
func (l *loop) end(ctx context.Context) {
	defer l.releaseAll()
	if l.set == nil {
		return // it was never scraped
	}
	// The clock may show the millisecond of the last scrape still.
	t := max(l.clock.Now().UnixMilli(), l.sentT+1)
	var r rows
	for _, h := range l.c.appendStale(nil) {
		r.add(h, t, batch.Stale())
	}
	for _, h := range l.report[:l.reportLen] {
		r.add(h, t, batch.Stale())
	}
	l.addOwed(&r, t, l.clock.Now())
	l.send(ctx, r.batch(l.source), l.clock.Now().Add(grace))
}

const (
	// maxOwed bounds the handles kept for markers that could not be sent.
	maxOwed = 100_000
	// owedFor is for how long: queries forget a series by themselves after
	// that, in their default setting.
	owedFor = 5 * time.Minute
)

// addOwed adds the markers that are owed, except of series that came back.
func (l *loop) addOwed(r *rows, t int64, now time.Time) {
	if len(l.owed) == 0 {
		return
	}
	if now.Sub(l.owedSince) > owedFor {
		l.settle()
		return
	}
	have := make(map[uint64][]*batch.Series, len(r.series))
	for _, h := range r.series {
		have[h.Hash()] = append(have[h.Hash()], h)
	}
owed:
	for _, h := range l.owed {
		for _, o := range have[h.Hash()] {
			if o.Equal(h) {
				continue owed
			}
		}
		r.add(h, t, batch.Stale())
	}
}

// settle forgets what is owed and releases the handles that are not needed any
// more.
func (l *loop) settle() {
	for _, h := range l.owed {
		if !l.c.has(h) {
			h.Release()
		}
	}
	l.owed = nil
	for _, s := range l.c.gone {
		s.h.Release()
	}
	clear(l.c.gone)
	l.c.gone = l.c.gone[:0]
}

// owe remembers the markers of a batch that was dropped.
func (l *loop) owe(b *batch.Metrics, at time.Time) {
	if len(l.owed) == 0 {
		l.owedSince = at
	}
	known := make(map[*batch.Series]bool, len(l.owed))
	for _, h := range l.owed {
		known[h] = true
	}
	for i, v := range b.V {
		if batch.IsStale(v) && !known[b.Series[i]] && len(l.owed) < maxOwed {
			l.owed = append(l.owed, b.Series[i])
		}
	}
}

func (l *loop) release(hs ...*batch.Series) {
	for _, h := range hs {
		if h != nil {
			h.Release()
		}
	}
}

// releaseAll gives back all handles of the target.
func (l *loop) releaseAll() {
	l.release(l.owed...)
	l.release(l.report[:]...)
	for s := range l.c.all {
		s.h.Release()
	}
	l.c.layout.free()
	l.c.layout = nil
}

// send sends b, and again what of it was refused, until due. It reports
// whether all was accepted.
func (l *loop) send(ctx context.Context, b *batch.Metrics, due time.Time) bool {
	ctx, stop := l.within(ctx, due.Sub(l.clock.Now()), grace, errDue)
	defer stop()
	err := l.set.out.SendMetrics(ctx, b)
	for pause := minPause; err != nil; pause = min(2*pause, maxPause) {
		partial, ok := errors.AsType[*flow.Partial](err)
		if !ok || ctx.Err() != nil || clock.Sleep(ctx, l.clock, pause) != nil {
			n := b.Len()
			if ok {
				n = partial.Len()
			}
			l.stats.Drop("refused", n)
			l.log.Warn("batch was dropped", "target", l.job.Load().redacted, "samples", n, "err", err)
			return false
		}
		err = partial.Retry(ctx)
	}
	return true
}

// within returns a context that ends with cause d from now. When parent ends
// before that it has extra left. stop must be called.
func (l *loop) within(parent context.Context, d, extra time.Duration, cause error) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	deadline := l.clock.Now().Add(d)
	timer := l.clock.NewTimer(d)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer timer.Stop()
		ended := parent.Done()
		for {
			select {
			case <-over:
				return
			case <-timer.C():
				cancel(cause)
				return
			case <-ended:
				if extra == 0 {
					cancel(context.Cause(parent))
					return
				}
				ended = nil
				timer.Reset(min(deadline.Sub(l.clock.Now()), extra))
			}
		}
	})
	return ctx, func() {
		close(over)
		wg.Wait()
		cancel(nil)
	}
}
