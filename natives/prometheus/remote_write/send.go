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

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/journal"
)

// maxRetryAfter bounds what an endpoint may ask for: beyond it a mistake there
// would look like a stop here.
const maxRetryAfter = 10 * time.Minute

// answer is what became of one request.
type answer struct {
	err        error // nil: accepted
	retry      bool
	retryAfter time.Duration // what the endpoint asked for, 0 if nothing
}

// send delivers a lane's blocks, one at a time, until ctx ends and then as long
// as there are any and they are taken, but not after posting has ended.
func (e *endpoint) send(ctx, posting context.Context, lane int) {
	var buf []byte
	for ctx.Err() == nil || !e.leave.Load() {
		b, err := e.journal.Next(ctx, lane, buf)
		if err != nil {
			return
		}
		buf = b.Payload[:0]
		if !e.deliver(ctx, posting, b) {
			return
		}
	}
}

// deliver returns when b is done; false: ctx ended and b is still in the journal.
func (e *endpoint) deliver(ctx, posting context.Context, b journal.Block) bool {
	var backoff time.Duration
	for attempt := 0; ; attempt++ {
		if attempt > 0 && ctx.Err() != nil {
			return false
		}
		if attempt > 0 && !e.journal.Keeps(b) {
			return true
		}
		s := e.settings.Load()
		payload, samples := b.Payload, b.Samples
		if limit := s.args.Queue.SampleAgeLimit; limit > 0 {
			oldest := e.clock.Now().Add(-limit).UnixMilli()
			if b.First < oldest {
				if p, n, err := dropOlder(b.Payload, oldest); err == nil {
					payload, samples = p, n
				} else { // the endpoint will say what it thinks of it
					e.log.Error("cannot read a block for sample_age_limit", "err", err)
				}
			}
			if samples == 0 {
				e.journal.Drop(b, "too_old")
				return true
			}
		}
		if attempt > 0 {
			e.stats.retried.Add(int64(samples))
		}
		a := e.post(posting, s, payload, attempt)
		if a.err == nil {
			e.journal.Ack(b)
			e.stats.sent.Add(int64(samples))
			e.stats.bytes.Add(int64(len(payload)))
			e.drop("too_old", b.Samples-samples)
			e.answered(s, "", nil)
			return true
		}
		if posting.Err() != nil {
			return false // weir stops; the endpoint is not to blame
		}
		if !a.retry {
			e.journal.Drop(b, "rejected")
			e.answered(s, "rejected", a.err)
			return true
		}
		e.answered(s, "retry", a.err)
		backoff = min(max(2*backoff, s.args.Queue.MinBackoff), s.args.Queue.MaxBackoff)
		wait := backoff
		if a.retryAfter > 0 {
			wait = min(a.retryAfter, maxRetryAfter)
		}
		t := e.clock.NewTimer(wait)
		select {
		case <-t.C():
		case <-s.replaced: // other settings may be what was missing
			backoff = 0
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// post makes one request.
func (e *endpoint) post(ctx context.Context, s *settings, payload []byte, attempt int) answer {
	ctx, cancel := context.WithTimeout(ctx, s.args.RemoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.args.URL, bytes.NewReader(payload))
	if err != nil {
		return answer{err: err}
	}
	// Prometheus's round-trippers write to the header, and lanes post at once.
	req.Header = s.header.Clone()
	if attempt > 0 {
		req.Header.Set("Retry-Attempt", strconv.Itoa(attempt))
	}
	began := time.Now()
	resp, err := s.client.Do(req)
	if err != nil {
		e.stats.observe("error", time.Since(began))
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // without the URL, which may hold secrets
		}
		return answer{err: err, retry: true}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	a := e.judge(s, resp, body)
	outcome := "ok"
	switch {
	case a.retry:
		outcome = "retry"
	case a.err != nil:
		outcome = "rejected"
	}
	e.stats.observe(outcome, time.Since(began))
	return a
}

// judge sorts an answer into a retry class: those of Prometheus.
func (e *endpoint) judge(s *settings, resp *http.Response, body []byte) answer {
	if resp.StatusCode/100 == 2 {
		return answer{}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	a := answer{err: fmt.Errorf("server answered %s: %s", resp.Status, line)}
	a.retry = resp.StatusCode/100 == 5 || (resp.StatusCode == http.StatusTooManyRequests && s.args.Queue.RetryOnHTTP429)
	if a.retry {
		a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), e.clock.Now())
	}
	return a
}

// retryAfter reads a Retry-After header, seconds or a date; 0 when there is
// none that lies ahead.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func retryAfter(header string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(header, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(header); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// dropOlder returns a block's payload without the samples before oldest, and
// how many are left.
func dropOlder(payload []byte, oldest int64) ([]byte, int, error) {
	raw, err := snappy.Decode(nil, payload)
	if err != nil {
		return nil, 0, err
	}
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		return nil, 0, err
	}
	kept := req.Timeseries[:0]
	for _, ts := range req.Timeseries {
		if (len(ts.Samples) > 0 && ts.Samples[0].Timestamp < oldest) ||
			(len(ts.Histograms) > 0 && ts.Histograms[0].Timestamp < oldest) {
			continue // a series has one sample, see encode.go
		}
		kept = append(kept, ts)
	}
	req.Timeseries = kept
	raw, err = req.Marshal()
	return snappy.Encode(nil, raw), len(kept), err
}
