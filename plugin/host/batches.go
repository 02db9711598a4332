package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// callTimeout is the time limit of a call. A plugin that exceeds it is ended. The
// receivers of a transform do not count: its outputs are sent after the answer.
const callTimeout = time.Minute

// consume passes a batch to the plugin, and sends the outputs of the call when the plugin
// has answered. If the process ends first, or if the component returns an error, the
// outputs are discarded: the source sends the batch again, and nothing is lost or sent
// twice.
func (s *session) consume(ctx context.Context, b link.Batch) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.done:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	of := b.Origin()
	c := &call{of: of, ack: b.Ack(), answer: make(chan error, 1)}
	id := s.lastID.Add(1)
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return errLost
	}
	s.calls[id] = c
	s.ours[of.Source] = true
	s.mu.Unlock()
	held := s.acks.Hold(id, b, func() {
		s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Flush{Flush: &protocol.Flush{Id: id}}})
	})
	s.sending.Lock()
	_ = s.stream.Send(&protocol.ToPlugin{Message: &protocol.ToPlugin_Call{Call: &protocol.Call{Id: id, Batch: s.enc.Encode(b, held)}}}) // after an error, the receiving loop answers the call
	s.sending.Unlock()
	err := s.wait(ctx, id, c)
	if err != nil {
		s.acks.Acked(id)
		return err
	}
	return flow.SendLists(ctx, s.c.o.Stats, c.outputs)
}

// wait waits for the answer to a call. After the end of ctx too: only the plugin knows
// whether it has accepted the batch.
func (s *session) wait(ctx context.Context, id uint64, c *call) error {
	op := s.c.o.Watch.Begin("call of the plugin", 0)
	defer op.End()
	t := time.NewTimer(callTimeout)
	defer t.Stop()
	canceled := ctx.Done()
	for {
		select {
		case err := <-c.answer:
			return err
		case <-canceled:
			canceled = nil
			s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Cancel{Cancel: &protocol.Cancel{Id: id}}})
		case <-t.C:
			_ = s.proc.fail(fmt.Errorf("the plugin %s has not answered a call within %s", s.proc.p.path, callTimeout))
			s.cancel()
		}
	}
}

// answered ends a call.
func (s *session) answered(a *protocol.Answer) error {
	s.mu.Lock()
	c := s.calls[a.Id]
	delete(s.calls, a.Id)
	s.mu.Unlock()
	switch {
	case c == nil:
		return fmt.Errorf("it has answered call %d, which is not in progress", a.Id)
	case a.Error != "":
		c.answer <- errors.New(a.Error)
	default:
		s.proc.useful.Store(true)
		c.answer <- nil
	}
	return nil
}

// decode decodes a batch of the plugin and maps its Source.
func (s *session) decode(m *protocol.Batch) (link.Batch, error) {
	b, err := link.Decode(s.dec, m)
	if err != nil {
		return b, err
	}
	of := b.Origin()
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.Source&link.Own == 0 {
		if !s.ours[of.Source] && !s.ours[of.Source&^link.Pushed] {
			return b, fmt.Errorf("it has sent a batch of source %d, which it did not get", of.Source)
		}
		return b, nil
	}
	ours, ok := s.theirs[of.Source]
	if !ok {
		if len(s.theirs) >= 1<<20 {
			return b, errors.New("it has sent batches of more than a million sources")
		}
		if ours = batch.NewSource(); of.Source&link.Pushed != 0 {
			ours = batch.NewPushSource()
		}
		s.theirs[of.Source] = ours
	}
	of.Source = ours
	return b.WithOrigin(of), nil
}

// output keeps an output of a call.
func (s *session) output(o *protocol.Output) error {
	b, err := s.decode(o.Batch)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, to := s.calls[o.Call], s.receivers[o.Receiver]
	switch {
	case c == nil:
		return fmt.Errorf("it has sent an output of call %d, which is not in progress", o.Call)
	case to == nil:
		return fmt.Errorf("it has sent a batch to receiver %d, which it does not have", o.Receiver)
	}
	if c.size += len(o.Batch.GetFrame()); c.size > maxOutputs {
		return fmt.Errorf("the outputs of a call have more than %d bytes", maxOutputs)
	}
	of := b.Origin()
	of.Way = c.of.Way // the plugin's number of the receiver is of no use here
	b = b.WithOrigin(of)
	if o.Batch.Ack {
		b = b.WithAck(c.ack)
	}
	for i := range c.outputs {
		if l := &c.outputs[i]; l.To == to {
			l.Batches = join(l.Batches, b)
			return nil
		}
	}
	c.outputs = append(c.outputs, flow.List{To: to, Batches: join(flow.Batches{}, b)})
	return nil
}

func join(bs flow.Batches, b link.Batch) flow.Batches {
	if b.Metrics != nil {
		bs.Metrics = append(bs.Metrics, b.Metrics)
	} else {
		bs.Logs = append(bs.Logs, b.Logs)
	}
	return bs
}

// sent delivers a batch that the plugin sends outside of a call, or a part of it again.
func (s *session) sent(m *protocol.Send) error {
	var b link.Batch
	var err error
	original := m.Id
	if m.Retry != 0 {
		original = m.Retry
	} else if b, err = s.decode(m.Batch); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	partial, to := s.partials[m.Retry], s.receivers[m.Receiver]
	delete(s.partials, m.Retry)
	switch {
	case to == nil:
		return fmt.Errorf("it has sent a batch to receiver %d, which it does not have", m.Receiver)
	case m.Retry != 0 && partial == nil:
		return fmt.Errorf("it has sent the rest of batch %d again, which was not refused in part", m.Retry)
	case len(s.sends) >= maxSends || s.sends[m.Id] != nil:
		return fmt.Errorf("it sends more than %d batches at the same time, or two with the same number", maxSends)
	}
	if m.Retry == 0 {
		of := b.Origin()
		of.Way = 0
		if b = b.WithOrigin(of); m.Batch.Ack && b.Logs != nil {
			b = s.acks.Arrived(original, b, func() {
				s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Acked{Acked: &protocol.Acked{Id: original}}})
			})
		}
	}
	ctx, cancel := context.WithCancel(flow.Labelled(s.ctx, s.c.o.ID))
	s.sends[m.Id] = cancel
	s.wg.Go(func() {
		defer cancel()
		s.deliver(ctx, m.Id, original, to, b, partial)
	})
	return nil
}

// deliver sends a batch, or the rest of one, and answers.
func (s *session) deliver(ctx context.Context, id, original uint64, to *flow.Receiver, b link.Batch, rest *flow.Partial) {
	var err error
	switch {
	case rest != nil:
		err = rest.Retry(ctx)
	case b.Metrics != nil:
		err = flow.NewOutput(s.c.o.Stats, []*flow.Receiver{to}).SendMetrics(ctx, b.Metrics)
	default:
		err = flow.NewOutput(s.c.o.Stats, []*flow.Receiver{to}).SendLogs(ctx, b.Logs)
	}
	a := &protocol.Answer{Id: id}
	p, partial := errors.AsType[*flow.Partial](err)
	if err != nil {
		a.Error, a.Partial = err.Error(), partial
	}
	s.mu.Lock()
	delete(s.sends, id)
	if partial {
		s.partials[original] = p
	}
	s.mu.Unlock()
	s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Answer{Answer: a}})
	if !partial {
		s.acks.Answered(original, err == nil)
	}
}
