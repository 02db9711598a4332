package flow

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine/batch"
)

// List is an ordered list of batches for one receiver. Batches of samples are sent in
// their order, and so are batches of lines.
type List struct {
	To      *Receiver
	Batches Batches
}

// SendLists sends each list to its receiver and returns when all have answered. It
// is for a node that has collected its outputs before it sends them; any other
// node uses an Output. stats belongs to the node and may be nil. If a receiver
// refuses a batch, the batches of the same signal after it are refused too, so that
// their order stays. The error is nil or a *Partial.
func SendLists(ctx context.Context, stats *Stats, lists []List) error {
	if stats == nil {
		stats = new(Stats)
	}
	var ps []pending
	for _, l := range lists {
		var samples, lines sequence
		for _, b := range l.Batches.Metrics {
			samples = append(samples, stats.addressTo(ctx, l.To, samplesPayload{b})...)
		}
		for _, b := range l.Batches.Logs {
			lines = append(lines, stats.addressTo(ctx, l.To, linesPayload{b})...)
		}
		for _, s := range []sequence{samples, lines} {
			switch {
			case len(s) == 1:
				ps = append(ps, pending{to: l.To, b: s[0], stats: stats})
			case len(s) > 1:
				ps = append(ps, pending{to: l.To, b: sequenceTo{s, stats}, stats: stats})
			}
		}
	}
	if len(ps) == 0 {
		return nil
	}
	return send(ctx, ps)
}

// addressTo returns p as it is sent to a receiver, or nothing if there is nothing to
// send. It counts p as the last batch that the node has sent.
func (s *Stats) addressTo(ctx context.Context, to *Receiver, p payload) []payload {
	o := Output{to: []*Receiver{to}, stats: s}
	if p.Len() == 0 {
		return nil
	}
	ps := o.address(p)
	if len(ps) == 0 {
		s.CountDropped(p.signal(), noReceiver, p.Len())
		return nil
	}
	var out Batches
	switch p := p.(type) {
	case samplesPayload:
		s.lastOut.Store(p.Metrics)
		out.Metrics = []*batch.Metrics{p.Metrics}
	case linesPayload:
		s.lastLogsOut.Store(p.Logs)
		out.Logs = []*batch.Logs{p.Logs}
	}
	if m := s.meter.Load(); m != nil {
		m.Out.add(p.Bytes())
	}
	if taps := s.taps.Load(); taps != nil {
		s.tapOut(ctx, *taps, out)
	}
	return []payload{ps[0].b}
}

// sequence is a list of batches of one signal.
type sequence []payload

func (s sequence) Len() (n int) {
	for _, p := range s {
		n += p.Len()
	}
	return n
}

func (s sequence) Bytes() (n int) {
	for _, p := range s {
		n += p.Bytes()
	}
	return n
}

// sequenceTo is a sequence on its way to one receiver.
type sequenceTo struct {
	sequence
	stats *Stats
}

func (s sequenceTo) unit() string                { return s.sequence[0].unit() }
func (s sequenceTo) signal() batch.Signals       { return s.sequence[0].signal() }
func (s sequenceTo) withReceiver(uint64) payload { return s } // its batches have theirs
func (s sequenceTo) countOut(*Stats)             {}           // deliver counts

// deliver sends the batches one after another. After a refusal, the rest is pending.
func (s sequenceTo) deliver(ctx context.Context, to *Receiver) error {
	for i, p := range s.sequence {
		err := p.deliver(ctx, to)
		if err == nil {
			p.countOut(s.stats)
			continue
		}
		rest := s.sequence[i:]
		var left Partial
		if below, ok := errors.AsType[*Partial](err); ok {
			p.countOut(s.stats)
			left.pending, rest = append(left.pending, below.pending...), s.sequence[i+1:]
		}
		if len(rest) > 0 {
			left.pending = append(left.pending, pending{to: to, b: sequenceTo{rest, s.stats}, stats: s.stats, err: err})
		}
		return &left
	}
	return nil
}
