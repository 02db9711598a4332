package remotewrite

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/storage/remote"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/outbox"
)

// answer is what became of one request.
type answer struct {
	err        error // nil: accepted
	written    int   // samples that were, unless it is to be sent again
	retry      bool
	retryAfter time.Duration // what the endpoint asked for, 0 if nothing
	fallBack   bool          // it is to be sent again as remote write 1.0
	stoodStill bool          // it was not the endpoint that had no time
	divide     bool          // it was rejected for what is in it, or for its size
}

// send delivers a shard's blocks, one request at a time or several, until ctx ends
// and then as long as there are any and they are taken, but not after posting has
// ended.
func (e *endpoint) send(ctx, posting context.Context, shard int) {
	j := joiner{e: e, Reader: outbox.NewReader(e.Journal, e.Clock, shard)}
	var pauses backoff.Pauses
	for e.Sending(ctx) {
		p := j.next(ctx)
		if p == nil {
			return
		}
		if e.mustSpread(e.settings.Load(), p, j.carry != nil) {
			flights := []*flight{}
			for i := range p.pieces {
				flights = append(flights, p.pieces[i].of)
			}
			flights = append(flights, j.carry)
			j.carry = nil
			if !e.spread(ctx, posting, shard, flights) {
				return
			}
			continue
		}
		pauses.Reset()
		if !e.deliver(ctx, posting, p, &pauses) {
			return
		}
	}
}

// deliver returns when p is done; false: ctx ended and some of it is still in the
// journal.
func (e *endpoint) deliver(ctx, posting context.Context, p *writeRequest, pauses *backoff.Pauses) bool {
	defer func() {
		if p.slot {
			e.inflight.end()
		}
	}()
	for attempt := 0; ; attempt++ {
		if attempt > 0 && ctx.Err() != nil {
			return false
		}
		if (attempt > 0 || !p.whole) && !p.dropLostBlocks(e.Journal) {
			return true
		}
		s := e.settings.Load()
		err := p.prepare(e.message(s), s.oldest(e.Clock.Now()))
		if err != nil || p.tooLarge() {
			if a, b, ok := p.halves(); ok {
				return e.deliver(ctx, posting, a, pauses) && e.deliver(ctx, posting, b, pauses)
			}
		}
		if err != nil {
			e.Log.Error("a block of the journal cannot be sent; it is lost", "samples", p.all, "err", err)
			e.Drop("cannot_encode", p.all)
			e.finishRequest(p)
			return true
		}
		if p.samples == 0 {
			e.dropLeftOut(p)
			e.finishRequest(p)
			return true
		}
		if attempt > 0 {
			e.Retried.Add(int64(p.samples))
		}
		if !p.slot && !e.inflight.wait(posting, s.requests) {
			return false
		}
		p.slot = true
		back := e.Comeback() // before the request, which may hang while it comes back
		a := e.post(posting, s, &p.request, attempt)
		p.slot = false
		e.inflight.end()
		if a.fallBack {
			e.fallBack(s, a.err)
			continue // at once, but as a retry
		}
		if a.retry && posting.Err() != nil {
			return false // weir stops; the endpoint is not to blame
		}
		if !a.retry {
			if a.divide && a.written == 0 {
				if first, second, ok := p.halves(); ok {
					e.Retried.Add(int64(p.samples))
					return e.deliver(ctx, posting, first, pauses) && e.deliver(ctx, posting, second, pauses)
				}
			}
			e.done(s, p, a)
			return true
		}
		if a.stoodStill {
			continue
		}
		e.answered(s, "retry", a.err, nil)
		q := &s.args.Queue
		pauses.Pause(ctx, e.Clock, backoff.Reasons{Min: q.MinBackoff, Max: q.MaxBackoff, RetryAfter: a.retryAfter, Back: back, Replaced: s.Replaced})
	}
}

// done ends a request that was answered for good. What was written of it is sent,
// the rest is dropped.
func (e *endpoint) done(s *settings, p *writeRequest, a answer) {
	e.finishRequest(p)
	e.dropLeftOut(p)
	if a.written == 0 && a.err != nil {
		e.Drop("rejected", p.samples)
		e.answered(s, "rejected", a.err, p)
		return
	}
	e.CountSent(a.written)
	e.Bytes.Add(int64(len(p.body)))
	if a.err == nil {
		e.answered(s, "", nil, nil)
		return
	}
	e.Drop("partial_write", p.samples-a.written)
	e.answered(s, "partial", a.err, p)
}

// dropLeftOut counts the samples of a write request that are not in its request.
func (e *endpoint) dropLeftOut(p *writeRequest) {
	e.Drop("too_old", p.all-p.samples-p.custom)
	e.dropCustomBuckets(p.custom)
}

// request is what is posted.
type request struct {
	message       message
	header, value string // if header is not ""
	body          []byte
	samples       int
}

// oldest returns the time before which samples are not sent.
func (s *settings) oldest(now time.Time) int64 {
	if limit := s.args.Queue.SampleAgeLimit; limit > 0 {
		return now.Add(-limit).UnixMilli()
	}
	return noneOld
}

// post makes one request.
func (e *endpoint) post(ctx context.Context, s *settings, r *request, attempt int) answer {
	header := s.Header.Clone() // Prometheus's round-trippers write to it, and shards post at once
	if r.message == v2 {
		header.Set("Content-Type", "application/x-protobuf;proto="+messageV2)
		header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	} else {
		header.Set("Content-Type", "application/x-protobuf")
		header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	}
	if r.header != "" {
		header.Set(r.header, r.value)
	}
	if attempt > 0 {
		header.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	resp, err := e.Post(ctx, &s.RemoteSettings, header, r.body)
	if err != nil {
		return answer{err: err, retry: true, stoodStill: resp.StoodStill}
	}
	a := e.classifyAnswer(s, r, resp.Response, resp.Message)
	if code := resp.StatusCode; code == http.StatusBadRequest || code == http.StatusUnprocessableEntity || code == http.StatusRequestEntityTooLarge {
		// A block may be to blame for the others.
		a.divide = !a.fallBack && !a.retry
	}
	outcome := "ok"
	switch {
	case a.retry:
		outcome = "retry"
	case a.fallBack:
		outcome = "fall_back"
	case a.err != nil && a.written > 0:
		outcome = "partial"
	case a.err != nil:
		outcome = "rejected"
	}
	took := time.Since(resp.Began)
	e.Seconds.Observe(outcome, took)
	if !a.retry && !a.fallBack {
		e.measured(took)
	}
	return a
}

// classifyAnswer sorts an answer into a retry class: those of Prometheus.
func (e *endpoint) classifyAnswer(s *settings, r *request, resp *http.Response, message string) answer {
	message = message[:min(len(message), 1<<10)]
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if r.message == v2 {
		if a, ok := e.judgeV2(s, r, resp, line); ok {
			return a
		}
	}
	if resp.StatusCode/100 == 2 {
		return answer{written: r.samples}
	}
	a := answer{err: fmt.Errorf("server answered %s: %s", resp.Status, line)}
	a.retry = resp.StatusCode/100 == 5 || (resp.StatusCode == http.StatusTooManyRequests && s.args.Queue.RetryOnHTTP429)
	if a.retry {
		a.retryAfter = outbox.RetryAfter(resp.Header, e.Clock.Now())
	}
	return a
}

// judgeV2 knows what an answer means to a request of remote write 2.0 only; ok
// is false when it is the same as for 1.0. Receivers say how much they wrote.
// Who takes a request and does not say so is one of 1.0 that did not look at the
// Content-Type, and found a request without series.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/#required-written-response-headers
func (e *endpoint) judgeV2(s *settings, r *request, resp *http.Response, line string) (a answer, ok bool) {
	if resp.StatusCode == http.StatusUnsupportedMediaType {
		return answer{fallBack: true, err: fmt.Errorf("server answered %s: %s", resp.Status, line)}, true
	}
	stats, err := remote.ParseWriteResponseStats(resp)
	class := resp.StatusCode / 100
	if class == 2 && !stats.Confirmed {
		return answer{fallBack: true, err: fmt.Errorf("server answered %s, but does not say that it wrote anything", resp.Status)}, true
	}
	if class == 2 {
		e.tookV2(s)
	}
	if !stats.Confirmed || err != nil || class != 2 && class != 4 || resp.StatusCode == http.StatusTooManyRequests {
		return answer{}, false
	}
	a.written = min(max(stats.AllSamples(), 0), r.samples)
	if class == 4 || a.written < r.samples {
		a.err = fmt.Errorf("server answered %s, wrote %d of %d samples: %s", resp.Status, a.written, r.samples, line)
	}
	return a, true
}
