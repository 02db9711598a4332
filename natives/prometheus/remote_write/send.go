package remotewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/storage/remote"

	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/journaling"
)

// answerWithin is how long the body of an answer may take once its head is
// there, which says all but a message. A server that never ends it would hold a
// lane until remote_timeout.
const answerWithin = time.Second

// stoodStill is how long after its timeout a request may end before the time
// was weir's own, which stood still, or its machine, and not the endpoint's.
const stoodStill = time.Second

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
	var p journaling.Pauses
	for ctx.Err() == nil || !e.leave.Load() {
		b, err := e.journal.Next(ctx, lane, buf)
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
func (e *endpoint) deliver(ctx, posting context.Context, b journal.Block, pauses *journaling.Pauses) bool {
	env, err := openBlock(b)
	if err != nil {
		e.log.Error("a block of the journal cannot be sent; it is lost", "samples", b.Samples, "err", err)
		e.journal.Drop(b, "unknown_kind")
		return true
	}
	p := parcel{env: env, first: b.First, all: b.Samples}
	for attempt := 0; ; attempt++ {
		if attempt > 0 && ctx.Err() != nil {
			return false
		}
		if attempt > 0 && !e.journal.Keeps(b) {
			return true
		}
		s := e.settings.Load()
		if err := p.prepare(e.message(s), s.oldest(e.clock.Now())); err != nil {
			e.log.Error("a block of the journal cannot be sent; it is lost", "samples", b.Samples, "err", err)
			e.journal.Drop(b, "cannot_encode")
			return true
		}
		if p.samples == 0 {
			e.journal.Drop(b, "too_old")
			return true
		}
		if attempt > 0 {
			e.stats.retried.Add(int64(p.samples))
		}
		back := e.comeback() // before the request, which may hang while it comes back
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
		pauses.Pause(ctx, e.clock, journaling.Reasons{Min: q.MinBackoff, Max: q.MaxBackoff, RetryAfter: a.retryAfter, Back: back, Replaced: s.replaced})
	}
}

// done ends a block that was answered for good. What was written of it is sent,
// the rest is dropped.
func (e *endpoint) done(s *settings, b journal.Block, p *parcel, a answer) {
	if a.written == 0 && a.err != nil {
		e.journal.Drop(b, "rejected")
		e.answered(s, "rejected", a.err, p)
		return
	}
	e.journal.Ack(b)
	e.stats.sent.Add(int64(a.written))
	e.stats.bytes.Add(int64(len(p.body)))
	e.drop("too_old", b.Samples-p.samples)
	if a.err == nil {
		e.answered(s, "", nil, nil)
		return
	}
	e.drop("partial_write", p.samples-a.written)
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
	ctx, cancel := context.WithTimeout(ctx, s.args.RemoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.args.URL, bytes.NewReader(r.body))
	if err != nil {
		return answer{err: err}
	}
	// Prometheus's round-trippers write to the header, and lanes post at once.
	req.Header = s.header.Clone()
	if r.message == v2 {
		req.Header.Set("Content-Type", "application/x-protobuf;proto="+messageV2)
		req.Header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	} else {
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	}
	if r.header != "" {
		req.Header.Set(r.header, r.value)
	}
	if attempt > 0 {
		req.Header.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	began := time.Now()
	resp, err := s.client.Do(req)
	if err != nil {
		took, outcome := time.Since(began), "error"
		late := ctx.Err() == context.DeadlineExceeded // not by weir's stop
		if late {
			outcome = "timeout"
		}
		e.stats.seconds.Observe(outcome, took)
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // without the URL, which may hold secrets
		}
		return answer{err: err, retry: true, stoodStill: late && took > s.args.RemoteTimeout+stoodStill}
	}
	defer resp.Body.Close()
	defer time.AfterFunc(answerWithin, cancel).Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	a := e.judge(s, r, resp, body)
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
	e.stats.seconds.Observe(outcome, time.Since(began))
	return a
}

// judge sorts an answer into a retry class: those of Prometheus.
func (e *endpoint) judge(s *settings, r *request, resp *http.Response, body []byte) answer {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
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
		a.retryAfter = journaling.RetryAfter(resp.Header, e.clock.Now())
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
