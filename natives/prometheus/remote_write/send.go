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
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/journaling"
)

// answer is what became of one request.
type answer struct {
	err        error // nil: accepted
	written    int   // samples that were, unless it is to be sent again
	retry      bool
	retryAfter time.Duration // what the endpoint asked for, 0 if nothing
	fallBack   bool          // it is to be sent again as remote write 1.0
	stoodStill bool          // it was not the endpoint that had no time
}

// send delivers a lane's blocks, one at a time, until ctx ends and then as long
// as there are any and they are taken, but not after posting has ended.
func (e *endpoint) send(ctx, posting context.Context, lane int) {
	var buf []byte
	var p backoff.Pauses
	for e.Sending(ctx) {
		b, err := e.Journal.Next(ctx, lane, buf)
		if err != nil {
			return
		}
		buf = b.Payload[:0]
		p.Reset()
		if !e.deliver(ctx, posting, b, &p) {
			return
		}
	}
}

// deliver returns when b is done; false: ctx ended and b is still in the journal.
func (e *endpoint) deliver(ctx, posting context.Context, b journal.Block, pauses *backoff.Pauses) bool {
	env, err := openBlock(b)
	if err != nil {
		e.Log.Error("a block of the journal cannot be sent; it is lost", "samples", b.Samples, "err", err)
		e.Journal.Drop(b, "unknown_kind")
		return true
	}
	p := parcel{env: env, first: b.First, all: b.Samples}
	for attempt := 0; ; attempt++ {
		if attempt > 0 && ctx.Err() != nil {
			return false
		}
		if attempt > 0 && !e.Journal.Keeps(b) {
			return true
		}
		s := e.settings.Load()
		if err := p.prepare(e.message(s), s.oldest(e.Clock.Now())); err != nil {
			e.Log.Error("a block of the journal cannot be sent; it is lost", "samples", b.Samples, "err", err)
			e.Journal.Drop(b, "cannot_encode")
			return true
		}
		if p.samples == 0 {
			e.Journal.Drop(b, "too_old")
			return true
		}
		if attempt > 0 {
			e.Retried.Add(int64(p.samples))
		}
		back := e.Comeback() // before the request, which may hang while it comes back
		a := e.post(posting, s, &p.request, attempt)
		if a.fallBack {
			e.fallBack(s, a.err)
			continue // at once, but as a retry
		}
		if a.retry && posting.Err() != nil {
			return false // weir stops; the endpoint is not to blame
		}
		if !a.retry {
			e.done(s, b, &p, a)
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

// done ends a block that was answered for good. What was written of it is sent,
// the rest is dropped.
func (e *endpoint) done(s *settings, b journal.Block, p *parcel, a answer) {
	if a.written == 0 && a.err != nil {
		e.Journal.Drop(b, "rejected")
		e.answered(s, "rejected", a.err, p)
		return
	}
	e.Journal.Ack(b)
	e.Sent.Add(int64(a.written))
	e.Bytes.Add(int64(len(p.body)))
	e.Drop("too_old", b.Samples-p.samples)
	if a.err == nil {
		e.answered(s, "", nil, nil)
		return
	}
	e.Drop("partial_write", p.samples-a.written)
	e.answered(s, "partial", a.err, p)
}

// request is what is posted.
type request struct {
	message       message
	header, value string // if header is not ""
	body          []byte
	samples       int
}

// parcel is a block on its way.
type parcel struct {
	env   envelope
	first int64
	all   int

	request
	oldest int64 // that request was made for
}

// prepare makes the request of a message without the samples before oldest.
func (p *parcel) prepare(m message, oldest int64) (err error) {
	p.header, p.value = p.env.header, p.env.value
	if p.first >= oldest {
		oldest = noneOld
	}
	if m == p.env.message && oldest == noneOld {
		p.message, p.body, p.samples = m, p.env.body, p.all
		return nil
	}
	if m == p.message && oldest == p.oldest {
		return nil
	}
	p.message, p.oldest = m, oldest
	p.body, p.samples, err = recode(p.env.body, p.env.message, m, oldest)
	return err
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
	header := s.Header.Clone() // Prometheus's round-trippers write to it, and lanes post at once
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
	resp, err := e.Post(ctx, &s.Settings, header, r.body)
	if err != nil {
		return answer{err: err, retry: true, stoodStill: resp.StoodStill}
	}
	a := e.judge(s, r, resp.Response, resp.Message)
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
	e.Seconds.Observe(outcome, time.Since(resp.Began))
	return a
}

// judge sorts an answer into a retry class: those of Prometheus.
func (e *endpoint) judge(s *settings, r *request, resp *http.Response, message string) answer {
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
		a.retryAfter = journaling.RetryAfter(resp.Header, e.Clock.Now())
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
