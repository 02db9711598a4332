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

// answer is the result of one request.
type answer struct {
	err        error // nil if the request was accepted
	written    int   // number of samples that were accepted, if the request is not sent again
	retry      bool
	retryAfter time.Duration // the delay that the endpoint requested, or 0
	fallBack   bool          // the request must be sent again as remote write 1.0
	stoodStill bool          // weir was suspended: the timeout was not the fault of the endpoint
	divide     bool          // the request was rejected because of its content or its size
}

// send sends the blocks of a shard, in one or several concurrent requests. After
// ctx ends, it continues as long as there are blocks and the endpoint accepts
// them, at most until posting ends.
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

// deliver returns true when p is done. It returns false if ctx ended and part of
// p is still in the journal.
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
		back := e.Comeback() // read before the request: the endpoint may recover while the request is in flight
		a := e.post(posting, s, &p.request, attempt)
		p.slot = false
		e.inflight.end()
		if a.fallBack {
			e.fallBack(s, a.err)
			continue // immediately, but counted as a retry
		}
		if a.retry && posting.Err() != nil {
			return false // weir stops, and the endpoint did not fail
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

// done completes a request that is not sent again. The samples that were written
// count as sent, the rest as dropped.
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

// dropLeftOut counts the samples of a write request that its encoded request does
// not contain.
func (e *endpoint) dropLeftOut(p *writeRequest) {
	e.Drop("too_old", p.all-p.samples-p.custom)
	e.dropCustomBuckets(p.custom)
}

// request is the body and headers of a request.
type request struct {
	message       message
	header, value string // set if header is not ""
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

// post sends one request.
func (e *endpoint) post(ctx context.Context, s *settings, r *request, attempt int) answer {
	header := s.Header.Clone() // Prometheus's round-trippers modify it, and shards send concurrently
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
		// One block may be the reason why the others are rejected too.
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

// classifyAnswer decides, by the rules of Prometheus, whether a request is
// retried.
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

// judgeV2 evaluates responses that have a special meaning for remote write 2.0.
// ok is false if the response means the same as for 1.0. Receivers of 2.0 report
// how many samples they wrote. A receiver that accepts a request without this
// report supports only 1.0, ignored the Content-Type and found a request without
// series.
//
// Format:
// https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/#required-written-response-headers
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
