package scrape

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// grace is the time that is left to send a batch when weir stops or the target is
// removed.
const grace = 5 * time.Second

// The pauses between two attempts to send a refused batch double from minPause to
// maxPause.
const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// deliver builds the batch of a scrape and sends it to out.
func (l *loop) deliver(ctx context.Context, out *flow.Output, in *intake, rep report, at time.Time) {
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
		r.series = l.c.columns(l.set, l.report[:n])
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
	for i := n; i < l.reportLen; i++ { // extra_metrics was disabled
		r.add(l.report[i], in.now, batch.Stale())
	}
	l.reportLen = n
	l.addOwed(r, in.now, at)
	l.sentT, l.latest = in.now, max(l.latest, in.latest)
	b := r.batch(l.source)
	l.out = out
	if l.send(ctx, out, b, l.next) {
		l.releaseStale()
	} else {
		l.deferStale(b, at)
	}
}

// batch returns the rows as a batch. The rows must not be used afterwards.
func (r *rows) batch(source uint64) *batch.Metrics {
	return &batch.Metrics{
		Source: source, Series: r.series, T: r.t, V: r.v,
		Histograms: r.histograms, Exemplars: r.exemplars, Starts: r.starts,
	}
}

// end sends staleness markers for all series of the target.
func (l *loop) end(ctx context.Context) {
	defer l.releaseAll()
	if l.out == nil {
		return // nothing was sent
	}
	// The clock may still show the millisecond of the last scrape.
	t := max(l.clock.Now().UnixMilli(), l.sentT+1, l.markT+1)
	var r rows
	l.addLast(&r, t)
	l.send(ctx, l.out, r.batch(l.source), l.clock.Now().Add(grace))
}

const (
	// maxMarkersAhead is how far in the future markers may lie. Receivers accept
	// minutes.
	maxMarkersAhead = time.Minute
	// redirectWithin is the time limit for markers to receivers that do not get
	// the target any more. The engine keeps those receivers for a little longer.
	redirectWithin = time.Second
)

// redirect ends the series at the receivers that got the last scrape but are not
// receivers of j. They get markers dated immediately before next, the time of the
// next scrape, which takes the new path. Earlier markers would leave a gap; later
// ones would make the old and the new series overlap.
func (l *loop) redirect(ctx context.Context, j *job, next time.Time) {
	if l.out == nil || l.out == j.set.out {
		return
	}
	left := l.out.Without(j.set.out)
	if left == nil {
		return
	}
	now := l.clock.Now()
	t := max(min(next.UnixMilli()-1, now.Add(maxMarkersAhead).UnixMilli()), l.sentT+1)
	var r rows
	l.addLast(&r, t)
	l.markT = max(l.markT, t)
	l.send(ctx, left, r.batch(l.source), now.Add(redirectWithin))
	l.out = l.out.Without(left)
}

// addLast adds markers for all series of the last scrape.
func (l *loop) addLast(r *rows, t int64) {
	for _, h := range l.c.appendStale(nil) {
		r.add(h, t, batch.Stale())
	}
	for _, h := range l.report[:l.reportLen] {
		r.add(h, t, batch.Stale())
	}
	l.addOwed(r, t, l.clock.Now())
}

const (
	// maxOwed is the maximum number of handles that are kept for markers that
	// could not be sent.
	maxOwed = 100_000
	// owedFor is how long they are kept. With default settings, queries stop
	// returning a series after that time even without a marker.
	owedFor = 5 * time.Minute
)

// addOwed adds the pending markers, except those of series that came back.
func (l *loop) addOwed(r *rows, t int64, now time.Time) {
	if len(l.owed) == 0 {
		return
	}
	if now.Sub(l.owedSince) > owedFor {
		l.releaseStale()
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

// releaseStale drops the pending markers and releases the handles that are not
// needed any more.
func (l *loop) releaseStale() {
	for _, h := range l.owed {
		if !l.c.has(h) && !slices.Contains(l.report[:], h) {
			h.Release()
		}
	}
	l.owed = nil
	for _, h := range l.c.gone {
		h.Release()
	}
	clear(l.c.gone)
	l.c.gone = l.c.gone[:0]
}

// deferStale keeps the markers of a batch that was dropped.
func (l *loop) deferStale(b *batch.Metrics, at time.Time) {
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

// releaseAll releases all handles of the target.
func (l *loop) releaseAll() {
	l.release(l.owed...)
	l.release(l.report[:]...)
	for h := range l.c.all {
		h.Release()
	}
	l.c.layout = nil
}

// send sends b to out and repeats the refused part until due. It reports whether
// everything was accepted.
func (l *loop) send(ctx context.Context, out *flow.Output, b *batch.Metrics, due time.Time) bool {
	ctx, stop := l.withDeadline(ctx, due.Sub(l.clock.Now()), grace, errDue)
	defer stop()
	err := out.SendMetrics(ctx, b)
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
