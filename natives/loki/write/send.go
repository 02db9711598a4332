package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/journaling"
	"github.com/weir-run/weir/natives/loki/push"
)

// answerWithin is how long the body of an answer may take once its head is
// there, which says all but a message. A server that never ends it would hold a
// lane until remote_timeout.
const answerWithin = time.Second

// unreachable is the longest pause while no connection can be made. Such an
// attempt costs an endpoint nothing, and an outage that ends is to be noticed
// soon: what pauses of minutes spare is an endpoint that answers.
const unreachable = 30 * time.Second

// stoodStill is how long after its timeout a request may end before the time
// was weir's own, which stood still, or its machine, and not the endpoint's.
const stoodStill = time.Second

// sender delivers the requests of a lane, one at a time.
type sender struct {
	e       *endpoint
	lane    int
	posting context.Context
	pauses  journaling.Pauses
	body    []byte
}

// send delivers a lane's blocks until ctx ends and then as long as there are any
// and they are taken, but not after posting has ended.
func (e *endpoint) send(ctx, posting context.Context, lane int) {
	j := joiner{e: e, lane: lane}
	s := sender{e: e, lane: lane, posting: posting}
	for ctx.Err() == nil || !e.leave.Load() {
		r := j.next(ctx)
		if r == nil {
			return
		}
		s.pauses.Reset()
		if !s.deliver(ctx, r) {
			return
		}
	}
}

// deliver returns when r is done; false: ctx ended and r is still in the journal.
func (sd *sender) deliver(ctx context.Context, r *request) bool {
	e := sd.e
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			if ctx.Err() != nil {
				return false
			}
			if r.keep(e.journal); len(r.parts) == 0 {
				e.fellOff(sd.lane)
				return true
			}
			_, lines := r.size()
			e.stats.retried.Add(int64(lines))
		}
		s := e.settings.Load()
		sd.body = r.appendBody(sd.body[:0])
		back := e.comeback() // before the request, which may hang while it comes back
		a := sd.post(s, r)
		switch {
		case a.kind == tooLarge:
			a, b, ok, err := r.halves()
			if ok {
				return sd.deliver(ctx, a) && sd.deliver(ctx, b)
			}
			sd.discard(s, r, "request_too_large", largest(r, err))
			return true
		case a.kind != again:
			sd.done(s, r, a)
			return true
		case sd.posting.Err() != nil:
			return false // weir stops; the endpoint is not to blame
		case a.stoodStill:
			continue
		}
		if most := s.args.MaxBackoffRetries; most > 0 && attempt+1 >= most {
			sd.discard(s, r, "retries", fmt.Errorf("given up after %d attempts: %w", attempt+1, a.err))
			return true
		}
		e.retries(s, sd.lane, r.tenant, a.err)
		if a.status == http.StatusTooManyRequests {
			back = nil // what others may send says nothing about this tenant
		}
		sd.pauses.Pause(ctx, e.clock, journaling.Reasons{
			Min: s.args.MinBackoff, Max: s.longest(a), RetryAfter: a.retryAfter, Back: back, Replaced: s.replaced,
		})
	}
}

// longest returns the longest pause after an answer. Where retries are counted,
// they are to last as long as was written.
func (s *settings) longest(a answer) time.Duration {
	if a.unreached && s.args.MaxBackoffRetries == 0 {
		return min(s.args.MaxBackoff, max(s.args.MinBackoff, unreachable))
	}
	return s.args.MaxBackoff
}

// unreached reports whether a request ended before there was a connection, to
// the endpoint or to the proxy.
func unreached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// largest says of what line a request is that is too large.
func largest(r *request, err error) error {
	if err != nil {
		return err
	}
	r.each(func(labels string, t int64, line string, _ []batch.Label) {
		err = fmt.Errorf("a line of %d bytes, of stream %s at %s, is more than the endpoint takes", len(line), labels, time.Unix(0, t).UTC().Format(time.RFC3339Nano))
	})
	return err
}

// discard ends a request of which nothing is sent.
func (sd *sender) discard(s *settings, r *request, reason string, err error) {
	_, lines := r.size()
	sd.done(s, r, answer{kind: final, err: err, lost: map[string]int{reason: lines}})
}

// done ends a request that was answered for good.
func (sd *sender) done(s *settings, r *request, a answer) {
	e := sd.e
	lost := 0
	for reason, n := range a.lost {
		e.drop(reason, n)
		lost += n
	}
	_, lines := r.size()
	e.stats.sent.Add(int64(lines - lost))
	if lost < lines {
		e.stats.bytes.Add(int64(len(sd.body)))
	}
	e.answered(s, sd.lane, r.tenant, a.err, a.lost, lost == lines)
	for i := range r.parts {
		f := r.parts[i].of
		if f.pieces--; f.pieces == 0 {
			e.journal.Ack(f.Block)
		}
	}
}

// post posts the sender's body, which is r's.
func (sd *sender) post(s *settings, r *request) answer {
	ctx, cancel := context.WithTimeout(sd.posting, s.args.RemoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.args.URL, bytes.NewReader(sd.body))
	if err != nil {
		return answer{kind: again, err: err}
	}
	req.Header = s.header.Clone() // round-trippers write to it, and lanes post at once
	if r.tenant != "" {
		req.Header.Set(push.TenantHeader, r.tenant)
	} else if t := s.tenant(); t != "" {
		req.Header.Set(push.TenantHeader, t)
	}
	stats := &sd.e.stats.seconds
	began := time.Now()
	resp, err := s.client.Do(req)
	if err != nil {
		took, outcome := time.Since(began), "error"
		late := ctx.Err() == context.DeadlineExceeded // not by weir's stop
		if late {
			outcome = "timeout"
		}
		stats.Observe(outcome, took)
		if ue, ok := err.(*url.Error); ok {
			err = ue.Err // without the URL, which may hold secrets
		}
		return answer{kind: again, err: err, unreached: unreached(err), stoodStill: late && took > s.args.RemoteTimeout+stoodStill}
	}
	defer resp.Body.Close()
	defer time.AfterFunc(answerWithin, cancel).Stop()
	message, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // more, and the connection is not used again
	a := judge(s, r, resp, string(message), sd.e.clock.Now())
	stats.Observe(a.outcome(), time.Since(began))
	return a
}
