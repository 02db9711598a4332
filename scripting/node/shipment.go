package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// shipper sends the records that requests emitted, one batch after another, so
// that the order of a series is that of the responses. Records that arrive
// while a batch is being sent are joined into the next batch; otherwise, each
// request would wait for all earlier journal writes. The instances of a node
// share it.
type shipper struct {
	source uint64
	turn   chan struct{} // capacity 1: holds a value while somebody sends

	mu      sync.Mutex
	waiting []*shipment
}

// shipment contains the records that one request emitted.
type shipment struct {
	c    *Component
	out  result
	done chan error // capacity 1
}

func newShipper() *shipper {
	return &shipper{source: batch.NewPushSource(), turn: make(chan struct{}, 1)}
}

// maxShipped is the maximum number of records of several requests in one batch.
const maxShipped = 10_000

// send sends the records that a request emitted through c, and returns when
// they were accepted. It gives up when ctx ends or after limit; the records may
// still be accepted then.
func (s *shipper) send(ctx context.Context, c *Component, out result, limit time.Duration) error {
	mine := &shipment{c: c, out: out, done: make(chan error, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	for {
		select {
		case err := <-mine.done: // before a batch with it is sent
			return err
		default:
		}
		select {
		case err := <-mine.done:
			return err
		case s.turn <- struct{}{}:
			s.sendNext(ctx, limit)
		case <-ctx.Done():
			if s.takeBack(mine) {
				return context.Cause(ctx)
			}
			select {
			case err := <-mine.done:
				return err
			default:
				return context.Cause(ctx)
			}
		}
	}
}

// takeBack removes a shipment that is not being sent yet.
func (s *shipper) takeBack(mine *shipment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.waiting {
		if w == mine {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// sendNext sends the next batch of waiting shipments, and releases the turn. It
// sends for all requests in the batch; the calling request may end earlier.
func (s *shipper) sendNext(ctx context.Context, limit time.Duration) {
	defer func() { <-s.turn }() // even after a panic
	group := s.takeGroup()
	if len(group) == 0 {
		return
	}
	c := group[0].c
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	alarm := clock.AfterFunc(c.opts.Clock, limit, func() { cancel(fmt.Errorf("not within %s", limit)) })
	defer alarm.Stop()
	outs := make([]result, len(group))
	for i, g := range group {
		outs[i] = g.out
	}
	joined := outs[0]
	if len(outs) > 1 {
		joined = result{}
		for set := range c.router.sets {
			joinLines(s.source, 0, set, outs, &joined)
			joinSamples(set, outs, &joined)
		}
	}
	err := c.ship(ctx, joined)
	for _, g := range group {
		g.done <- err
	}
}

// takeGroup returns the shipments for the next batch: all of one instance,
// which determines the receivers.
func (s *shipper) takeGroup() (group []*shipment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, records := 0, 0
	for _, w := range s.waiting {
		records += w.out.samples.len() + w.out.lines.len()
		if n > 0 && (records > maxShipped || w.c != s.waiting[0].c) {
			break
		}
		n++
	}
	group = s.waiting[:n:n]
	s.waiting = append([]*shipment(nil), s.waiting[n:]...)
	return group
}

// ship sends out until every receiver has accepted it. A retry goes only to the
// receivers that refused it.
func (c *Component) ship(ctx context.Context, out result) error {
	err := c.router.send(ctx, c.rules, out, c.opts.Clock.Now().UnixMilli())
	for pause := 20 * time.Millisecond; err != nil; pause = min(2*pause, time.Second) {
		p, refused := errors.AsType[*flow.Partial](err)
		if !refused || ctx.Err() != nil || errors.Is(err, flow.ErrStopped) || clock.Sleep(ctx, c.opts.Clock, pause) != nil {
			return err
		}
		err = p.Retry(ctx)
	}
	return nil
}
