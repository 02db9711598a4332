package write

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/push"
)

// unreachable is the maximum pause while no connection can be made. Such an
// attempt costs the endpoint nothing, and the end of an outage should be noticed
// soon. Long pauses protect an endpoint that responds.
const unreachable = 30 * time.Second

// sender sends the requests of a shard, one at a time.
type sender struct {
	e      *endpoint
	shard  int
	pauses backoff.Pauses
	body   []byte
}

// send sends the blocks of a shard. After ctx ends, it continues as long as there
// are blocks and the endpoint accepts them, at most until posting ends.
func (e *endpoint) send(ctx, posting context.Context, shard int) {
	j := joiner{e: e, Reader: outbox.NewReader(e.Journal, e.Clock, shard)}
	s := sender{e: e, shard: shard}
	for e.Sending(ctx) {
		r := j.next(ctx)
		if r == nil {
			return
		}
		s.pauses.Reset()
		if !s.deliver(ctx, posting, r) {
			return
		}
	}
}

// deliver returns true when r is done. It returns false if ctx or posting ended
// and r is still in the journal.
func (sd *sender) deliver(ctx, posting context.Context, r *request) bool {
	e := sd.e
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			if ctx.Err() != nil {
				return false
			}
			if r.dropLostParts(e.Journal); len(r.parts) == 0 {
				e.fellOff(sd.shard)
				return true
			}
			_, lines := r.size()
			e.Retried.Add(int64(lines))
		}
		s := e.settings.Load()
		sd.body = r.appendBody(sd.body[:0])
		back := e.Comeback() // read before the request: the endpoint may recover while the request is in flight
		a := sd.post(posting, s, r)
		switch {
		case a.kind == tooLarge:
			a, b, ok, err := r.halves()
			if ok {
				return sd.deliver(ctx, posting, a) && sd.deliver(ctx, posting, b)
			}
			sd.discard(s, r, "request_too_large", largest(r, err))
			return true
		case a.kind != again:
			sd.done(s, r, a)
			return true
		case posting.Err() != nil:
			return false // weir stops, and the endpoint did not fail
		case a.stoodStill:
			continue
		}
		if most := s.args.MaxBackoffRetries; most > 0 && attempt+1 >= most {
			sd.discard(s, r, "retries", fmt.Errorf("given up after %d attempts: %w", attempt+1, a.err))
			return true
		}
		e.retries(s, sd.shard, r.tenant, a.err)
		if a.status == http.StatusTooManyRequests {
			back = nil // the success of other tenants means nothing for this one
		}
		sd.pauses.Pause(ctx, e.Clock, backoff.Reasons{
			Min: s.args.MinBackoff, Max: s.longest(a), RetryAfter: a.retryAfter, Back: back, Replaced: s.Replaced,
		})
	}
}

// longest returns the maximum pause after an answer. If the number of retries is
// limited, the configured pause applies.
func (s *settings) longest(a answer) time.Duration {
	if a.unreached && s.args.MaxBackoffRetries == 0 {
		return min(s.args.MaxBackoff, max(s.args.MinBackoff, unreachable))
	}
	return s.args.MaxBackoff
}

// unreached reports whether a request ended before a connection to the endpoint
// or to the proxy was established.
func unreached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// largest returns err, or, if it is nil, an error with the size and the stream of
// the only line in a request that is too large.
func largest(r *request, err error) error {
	if err != nil {
		return err
	}
	r.each(func(labels string, t int64, line string, _ []batch.Label) {
		err = fmt.Errorf("a line of %d bytes, of stream %s at %s, is more than the endpoint takes", len(line), labels, time.Unix(0, t).UTC().Format(time.RFC3339Nano))
	})
	return err
}

// discard drops a request without sending it.
func (sd *sender) discard(s *settings, r *request, reason string, err error) {
	_, lines := r.size()
	sd.done(s, r, answer{kind: final, err: err, lost: map[string]int{reason: lines}})
}

// done completes a request that is not sent again.
func (sd *sender) done(s *settings, r *request, a answer) {
	e := sd.e
	lost := 0
	for reason, n := range a.lost {
		e.Drop(reason, n)
		lost += n
	}
	_, lines := r.size()
	e.CountSent(lines - lost)
	if lost < lines {
		e.Bytes.Add(int64(len(sd.body)))
	}
	e.answered(s, sd.shard, r.tenant, a.err, a.lost, lost == lines)
	for i := range r.parts {
		f := r.parts[i].of
		if f.pieces--; f.pieces == 0 {
			e.Journal.Ack(f.Block)
		} else {
			e.Journal.Done(f.Block, r.parts[i].lines)
		}
	}
}

// post posts the body of the sender, which is that of r.
func (sd *sender) post(ctx context.Context, s *settings, r *request) answer {
	header := s.Header.Clone() // round-trippers modify it, and shards send concurrently
	if r.tenant != "" {
		header.Set(push.TenantHeader, r.tenant)
	} else if t := s.tenant(); t != "" {
		header.Set(push.TenantHeader, t)
	}
	resp, err := sd.e.Post(ctx, &s.RemoteSettings, header, sd.body)
	if err != nil {
		return answer{kind: again, err: err, unreached: unreached(err), stoodStill: resp.StoodStill}
	}
	a := classifyAnswer(s, r, resp.Response, resp.Message, sd.e.Clock.Now())
	sd.e.Seconds.Observe(a.outcome(), time.Since(resp.Began))
	return a
}
