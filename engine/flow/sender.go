package flow

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Sender sends on what a node that renames or drops series makes of batches.
// Series that will not come again because the node changed get their staleness
// markers: those of an older version of its rules, see batch.Outputs, and
// those that went to receivers it does not send to any more.
//
// A node hands its Sender from component to component. All methods are safe
// for concurrent use.
type Sender struct {
	outputs *batch.Outputs

	mu     sync.Mutex
	to     *Output
	trails map[batch.Origin]*trail
}

// trail is where the batches of one Origin went.
type trail struct {
	free chan struct{} // capacity 1, holds a value unless a batch is on its way
	to   *Output       // the receivers that got the last batch and are not told of an end
	t    int64         // of the last batch, Unix ms
}

// EndAfter is how long after To EndLeaving should be called: sources that send
// often have done so, and the engine keeps nodes that leave for longer.
const EndAfter = time.Second

// NewSender returns a Sender that drops everything until To is called.
func NewSender() *Sender {
	return &Sender{outputs: batch.NewOutputs(), to: new(Output), trails: map[batch.Origin]*trail{}}
}

// To makes the batches from now on go to o. Call EndLeaving after a while.
func (s *Sender) To(o *Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = o
}

func (s *Sender) enter(ctx context.Context, of batch.Origin) (*trail, error) {
	s.mu.Lock()
	tr := s.trails[of]
	if tr == nil {
		tr = &trail{free: make(chan struct{}, 1)}
		tr.free <- struct{}{}
		s.trails[of] = tr
	}
	s.mu.Unlock()
	select {
	case <-tr.free:
		return tr, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (tr *trail) leave() { tr.free <- struct{}{} }

func (s *Sender) current() *Output {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

// Send sends out, which version gen made of a batch of the latest time t.
// The error is a *Partial, or ctx's when nothing was sent.
func (s *Sender) Send(ctx context.Context, gen uint64, out *batch.Metrics, t int64) error {
	tr, err := s.enter(ctx, out.Origin())
	if err != nil {
		return err
	}
	defer tr.leave()
	to := s.current()
	if tr.to != nil && tr.to != to {
		if left := tr.to.Without(to); left != nil {
			s.end(ctx, left, out.Origin(), max(t-1, tr.t+1))
		}
	}
	tr.to, tr.t = to, t
	out = s.outputs.Settle(gen, out, t)
	// What is refused goes back to the source, which retries below this node
	// and does not come here again.
	if err := to.SendMetrics(ctx, out); err != nil {
		s.outputs.SentInPart(gen, out)
		return err
	}
	s.outputs.Sent(gen, out)
	return nil
}

// Takes reports whether a receiver takes a signal, or may: of one that is not
// known yet.
func (s *Sender) Takes(signal batch.Signals) bool {
	for _, r := range s.current().to {
		if accepts := r.Accepts(); accepts == 0 || accepts&signal != 0 {
			return true
		}
	}
	return false
}

// SendLogs sends lines, which end by themselves: a stream that does not come
// again leaves nothing to be marked. The error is nil or a *Partial.
func (s *Sender) SendLogs(ctx context.Context, b *batch.Logs) error {
	return s.current().SendLogs(ctx, b)
}

// end sends markers for all that an Origin's last batch showed.
func (s *Sender) end(ctx context.Context, to *Output, of batch.Origin, t int64) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a batch waits behind it
	defer cancel()
	// Who refuses has counted it; it would be of no use to send them elsewhere.
	_ = to.SendMetrics(ctx, s.outputs.Ends(of, t))
}

// endNow ends what the batches of an Origin showed, right before the next one,
// of the latest time t, goes elsewhere.
func (s *Sender) endNow(ctx context.Context, of batch.Origin, t int64) {
	tr, err := s.enter(ctx, of)
	if err != nil {
		return
	}
	defer tr.leave()
	if tr.to == nil {
		return
	}
	s.end(ctx, tr.to, of, max(t-1, tr.t+1))
	tr.to = nil
	s.outputs.Forget(of)
}

// EndLeaving ends the series at receivers that are not sent to any more and
// whose nodes leave the graph before the next batch comes. Others learn it
// right before that, so that nothing is missing in between.
func (s *Sender) EndLeaving(ctx context.Context) {
	s.mu.Lock()
	var all []batch.Origin
	for of := range s.trails {
		all = append(all, of)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, of := range all {
		wg.Go(func() {
			tr, err := s.enter(ctx, of)
			if err != nil {
				return
			}
			defer tr.leave()
			if tr.to == nil {
				return
			}
			left := tr.to.Without(s.current()).leaving()
			if left == nil {
				return
			}
			s.end(ctx, left, of, tr.t+1)
			tr.to = tr.to.Without(left)
		})
	}
	wg.Wait()
}

// Sweep forgets the sources whose series were all released.
func (s *Sender) Sweep() {
	s.outputs.Sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, tr := range s.trails {
		if !s.outputs.Has(of) && len(tr.free) == 1 {
			delete(s.trails, of)
		}
	}
}

// Idle reports whether nothing is known of any source: nobody would miss the
// Sender.
func (s *Sender) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.trails) == 0
}
