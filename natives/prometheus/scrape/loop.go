package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// tolerance is how late a scrape may start and still get the time at which it was
// due, because regular timestamps compress better. It is limited to 1 % of the
// interval.
const tolerance = 2 * time.Millisecond

// maxLate is how late a scrape may start. A longer delay means that weir or its
// machine was suspended, and that all other targets are late too. Catching up on
// all of them at once would overload weir and the targets.
const maxLate = time.Second

// Causes for the end of a loop.
var (
	errRemoved    = errors.New("target was removed")
	errStopped    = errors.New("weir is stopping")
	errHandedOver = errors.New("target goes on elsewhere")
)

var (
	errTimeout = fmt.Errorf("scrape timeout: %w", context.DeadlineExceeded)
	errDue     = errors.New("the next scrape is due")
)

// job is the work of a loop: the target and the plan that contains it.
type job struct {
	*target
	*plan
}

// state belongs to a target as long as it is scraped, and is passed from
// component to component. Only the loop of the target uses it.
type state struct {
	source uint64
	c      *cache
	set    *settings // of the last scrape, nil before the first
	next   time.Time // the time of the next scrape; zero before the loop has run
	period time.Duration
	missed bool // the last scrape was skipped or postponed
	// rejecting is true if the last scrape contained invalid native histograms.
	rejecting bool
	// large is true if the last good scrape had more than largeScrape samples.
	large  bool
	sentT  int64 // time of the last scrape, Unix ms
	latest int64 // no sample of the target is later, Unix ms

	// out is the output of the last scrape, without the receivers that got
	// markers since; nil before the first scrape. markT is the time of those
	// markers.
	out   *flow.Output
	markT int64

	report     [reportRows]*batch.Series
	reportMeta bool
	reportLen  int // number of report series in the last scrape

	// owed are handles whose staleness markers were in a batch that was dropped.
	owed      []*batch.Series
	owedSince time.Time
}

// newState returns the state of a target that may have samples up to the time
// latest.
func newState(latest int64) *state {
	return &state{source: batch.NewSource(), c: newCache(), latest: latest}
}

// loop scrapes one target.
type loop struct {
	*state
	clock   clock.Clock
	log     *slog.Logger
	metrics *metrics
	stats   *flow.Stats

	job    atomic.Pointer[job]
	wake   chan struct{} // has a value if job was changed
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	last    time.Time
	took    time.Duration
	samples int
	err     error
}

// run scrapes until ctx ends. If the target was removed, it then ends the series.
func (l *loop) run(ctx context.Context) {
	j := l.job.Load()
	now := l.clock.Now()
	if l.next.IsZero() {
		l.next = j.first(now, len(j.targets.all))
		l.period = j.interval
	}
	timer := l.clock.NewTimer(l.next.Sub(now))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			switch cause := context.Cause(ctx); {
			case errors.Is(cause, errRemoved):
				l.end(ctx)
			case errors.Is(cause, errStopped):
				l.releaseAll()
			}
			return
		case <-l.wake:
			j := l.job.Load()
			if j.interval != l.period {
				l.period = j.interval
				l.next = j.slot(l.clock.Now())
				// After the markers, unless they lie in the future because the
				// clock was set back.
				wait := time.UnixMilli(l.markT + 1).Sub(l.next)
				if wait > 0 && wait <= maxMarkersAhead+time.Millisecond {
					l.next = j.slot(l.next.Add(wait - 1)) // the slot may be exactly there
				}
			}
			l.redirect(ctx, j, l.next)
		case <-timer.C():
			if ctx.Err() != nil { // both channels may be ready
				break
			}
			if late := l.clock.Now().Sub(l.next); late > maxLate && l.set != nil && !l.missed {
				l.miss(late)
				break
			}
			l.missed = false
			l.scrape(ctx)
		}
		timer.Reset(l.next.Sub(l.clock.Now()))
	}
}

// soon is the maximum time to the next scrape for which a late scrape is skipped.
const soon = 10 * time.Second

// miss skips a late scrape if the next one is soon; otherwise, it postpones the
// scrape by a delay that depends on the target. This never happens twice in a
// row: if a machine is too slow for all targets, late scrapes are better than
// none.
func (l *loop) miss(late time.Duration) {
	j, now := l.job.Load(), l.clock.Now()
	l.missed = true
	l.next = j.slot(now)
	if wait := l.next.Sub(now); wait > soon {
		l.next = now.Add(j.offset(wait / 2))
		return
	}
	l.metrics.missed.Inc()
	if l.metrics.tellMissed(now) {
		l.log.Warn("scrapes are left out: weir or its machine stood still at their time", "late", late)
	}
}

// scrape scrapes once and sets the time of the next scrape.
func (l *loop) scrape(ctx context.Context) {
	j := l.job.Load()
	start := l.clock.Now()
	at, first := l.next, l.set == nil
	// Compare wall clock times: if the clock was set, the time at which the
	// scrape was due is wrong.
	if late := start.Round(0).Sub(at.Round(0)); late < 0 || late > min(tolerance, j.interval/100) {
		at = start
	}
	l.next = j.slot(at)
	if first && l.next.Sub(at) < j.interval/2 {
		l.next = j.slot(l.next) // the first scrape is not in the target's slot
	}
	if l.set != nil && l.set != j.set && !l.set.samplesAs(j.set) {
		l.c.forget()
	}
	l.set = j.set

	in, rep, way := l.scrapeOnce(ctx, j, at, start)
	if in != nil {
		l.deliver(ctx, way.set.out, in, rep, at)
	}
}

// scrapeOnce creates the rows and the report of a scrape. way determines where
// they are sent. in is nil if ctx ended during the scrape. The body is not
// retained, because sending may take long.
func (l *loop) scrapeOnce(ctx context.Context, j *job, at, start time.Time) (in *intake, rep report, way *job) {
	b := bodies.Get().(*body)
	defer b.free()
	contentType, err := l.fetch(ctx, j, b)
	if ctx.Err() != nil {
		return nil, rep, nil // discard the scrape
	}
	way = l.job.Load() // the job may have changed during the fetch
	l.redirect(ctx, way, at)
	rep = report{timeout: j.timeout.Seconds(), sampleLimit: j.set.cfg.SampleLimit}
	switch {
	case err == nil:
		rep.bytes = len(b.buf)
		l.metrics.bytes.Add(float64(rep.bytes))
	case errors.Is(err, errBodySizeLimit):
		rep.bytes = -1
	}
	in = l.intake(j, at)
	if err != nil {
		in.empty()
	} else if err = shorten(in.body(b.buf, contentType)); err != nil {
		rep.scraped, rep.added, rep.seriesAdded = in.total, in.added, in.seriesAdded
		in = l.intake(j, at)
		in.empty()
	} else {
		rep.scraped, rep.added, rep.seriesAdded = in.total, in.added, in.seriesAdded
		l.stats.Drop("duplicate", in.repeated)
		l.stats.Drop("too_far_ahead", in.ahead)
		l.noteDropped(j, in)
	}
	took := l.clock.Now().Sub(start)
	rep.up, rep.seconds = err == nil, took.Seconds()
	l.recordResult(j, start, took, rep.scraped, err)
	return in, rep, way
}

// shorten truncates the message of an error about an invalid body, which may
// quote megabytes of it.
func shorten(err error) error {
	const most = 500
	if err == nil || !errors.Is(err, errInvalidBody) || len(err.Error()) <= most {
		return err
	}
	text := strings.TrimPrefix(err.Error(), errInvalidBody.Error()+": ")
	return fmt.Errorf("%w: %s…", errInvalidBody, strings.ToValidUTF8(text[:min(most, len(text))], ""))
}

func (l *loop) intake(j *job, at time.Time) *intake {
	return &intake{
		set: j.set, opts: j.parserOptions(j.set), tags: j.tags, c: l.c,
		now: at.UnixMilli(), maxT: l.clock.Now().UnixMilli() + maxAhead,
		after: max(l.latest, l.markT), latest: at.UnixMilli(),
	}
}

func (l *loop) fetch(ctx context.Context, j *job, into *body) (contentType string, err error) {
	if j.targets.limitErr != nil {
		return "", j.targets.limitErr
	}
	ctx, stop := l.withDeadline(ctx, j.timeout, 0, errTimeout)
	defer stop()
	contentType, err = j.set.fetch(ctx, j.target, into)
	if err == nil {
		return contentType, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) && !errors.Is(err, errNoRoom) {
		err = cause
	}
	if j.set.failures != nil {
		j.set.failures.With("target", j.redacted).Error(err.Error())
	}
	return "", err
}

// recordResult stores the result of a scrape and logs it if it changed.
func (l *loop) recordResult(j *job, start time.Time, took time.Duration, samples int, err error) {
	l.metrics.scrapes.WithLabelValues(outcome(err)).Inc()
	l.mu.Lock()
	was := l.err
	l.last, l.took, l.samples, l.err = start, took, samples, err
	l.mu.Unlock()
	l.noteLarge(j, samples, err)
	switch {
	case err != nil && was == nil:
		l.log.Warn("scrape failed", "target", j.redacted, "err", err)
	case err == nil && was != nil:
		l.log.Info("target is scraped again", "target", j.redacted)
	}
}

// largeScrape is the number of samples above which a warning is logged for a
// target without a sample_limit. node_exporter has some thousands, a kubelet or
// an API server tens of thousands. More samples usually mean a label with an
// unlimited number of values.
const largeScrape = 100_000

// noteLarge logs a warning when a target becomes large.
func (l *loop) noteLarge(j *job, samples int, err error) {
	if err != nil {
		return
	}
	large := samples > largeScrape && j.set.cfg.SampleLimit == 0
	if large {
		l.metrics.large.Inc()
		if !l.large {
			l.log.Warn("target has very many samples: bound them by sample_limit, or set it above their number if they are wanted", "target", j.redacted, "samples", samples)
		}
	}
	l.large = large
}

// noteDropped counts everything except plain samples that was dropped from a good
// scrape or changed. It logs when a target begins to expose invalid native
// histograms.
func (l *loop) noteDropped(j *job, in *intake) {
	dropped := 0
	for reason, n := range in.invalid {
		l.stats.Drop(reason, n)
		dropped += n
	}
	for reason, n := range in.reduced {
		l.metrics.reduced.WithLabelValues(reason).Add(float64(n))
	}
	for reason, n := range in.exDropped {
		l.metrics.exemplarsDropped.WithLabelValues(reason).Add(float64(n))
	}
	if dropped > 0 && !l.rejecting {
		l.log.Warn("native histograms are invalid; they are dropped and counted", "target", j.redacted, "dropped", dropped, "first", in.invalidErr)
	}
	l.rejecting = dropped > 0
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

// limit ends a context at a deadline.
type limit struct {
	clock    clock.Clock
	deadline time.Time
	cause    error
	cancel   context.CancelCauseFunc

	mu    sync.Mutex
	alarm *clock.Alarm
	late  bool // weir was suspended; responses that arrived in the meantime are read
	over  bool
}

// withDeadline returns a context that ends with cause after d. If parent ends
// earlier and extra is greater than 0, the context continues for up to extra. The
// caller must call stop.
func (l *loop) withDeadline(parent context.Context, d, extra time.Duration, cause error) (_ context.Context, stop func()) {
	w := &limit{clock: l.clock, deadline: l.clock.Now().Add(d), cause: cause}
	from := parent
	if extra > 0 {
		from = context.WithoutCancel(parent)
	}
	var ctx context.Context
	ctx, w.cancel = context.WithCancelCause(from)
	w.mu.Lock()
	w.alarm = clock.AfterFunc(l.clock, d, w.ring)
	w.mu.Unlock()
	unbind := func() bool { return true }
	if extra > 0 { // if parent has ended already, shorten is called immediately
		unbind = context.AfterFunc(parent, func() { w.shorten(extra) })
	}
	return ctx, func() {
		unbind()
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
		w.alarm.Stop()
		w.cancel(nil)
	}
}

// ring ends the context. If weir itself was suspended, it extends the deadline
// once, so that responses that arrived in the meantime can be read.
func (w *limit) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if !w.late && w.clock.Now().Sub(w.deadline) > maxLate {
		w.late = true
		w.alarm.Reset(maxLate)
		return
	}
	w.cancel(w.cause)
}

// shorten reduces the remaining time to left.
func (w *limit) shorten(left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.alarm.Reset(min(w.deadline.Sub(w.clock.Now()), left))
	}
}
