package flow

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Sender sends the batches of a node that renames or drops series. When the
// node changes, it sends staleness markers for the series that will not come
// again: series from an older version of its rules (see batch.Outputs), and
// series sent to receivers that the node no longer uses.
//
// A node passes its Sender from component to component. All methods are safe
// for concurrent use.
type Sender struct {
	outputs *batch.Outputs

	mu     sync.Mutex
	to     *Output
	trails map[batch.Origin]*trail
}

// trail records where the batches of one Origin were sent.
type trail struct {
	free chan struct{} // capacity 1; holds a value unless a batch is being sent
	to   *Output       // the receivers of the last batch that have not been sent staleness markers
	t    int64         // of the last batch, Unix ms
}

// EndAfter is how long to wait after To before calling EndLeaving. Sources that
// send often have sent a batch by then. The engine keeps nodes that leave the
// graph for longer than this.
const EndAfter = time.Second

// NewSender returns a Sender that drops everything until To is called.
func NewSender() *Sender {
	return &Sender{outputs: batch.NewOutputs(), to: new(Output), trails: map[batch.Origin]*trail{}}
}

// To sends all later batches to o. Call EndLeaving after a while.
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

// Send sends out, which version gen created from a batch whose latest time is
// t. The error is a *Partial, or ctx's if nothing was sent.
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
	// The source gets the refused batches back. It retries below this node, so
	// they do not pass through here again.
	if err := to.SendMetrics(ctx, out); err != nil {
		s.outputs.SentInPart(gen, out)
		return err
	}
	s.outputs.Sent(gen, out)
	return nil
}

// Takes reports whether a receiver takes a signal, or might: the signals of
// some receivers are not known yet.
func (s *Sender) Takes(signal batch.Signals) bool {
	for _, r := range s.current().to {
		if accepts := r.Accepts(); accepts == 0 || accepts&signal != 0 {
			return true
		}
	}
	return false
}

// SendLogs sends lines. Log streams need no staleness markers. The error is nil
// or a *Partial.
func (s *Sender) SendLogs(ctx context.Context, b *batch.Logs) error {
	return s.current().SendLogs(ctx, b)
}

// end sends staleness markers for all series in the last batch of an Origin.
func (s *Sender) end(ctx context.Context, to *Output, of batch.Origin, t int64) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a batch waits until this is done
	defer cancel()
	// The receiver has counted refused markers. Sending them to another receiver
	// would be useless.
	_ = to.SendMetrics(ctx, s.outputs.Ends(of, t))
}

// endNow ends the series in the last batch of an Origin. It is called right
// before the next batch, whose latest time is t, is sent to other receivers.
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

// EndLeaving ends the series at receivers that are no longer used and whose
// nodes leave the graph before the next batch. The other receivers get the
// staleness markers right before the next batch, so that there is no gap.
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

// Sweep removes the sources whose series were all released.
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

// Idle reports whether no source is recorded, so that the Sender can be
// discarded.
func (s *Sender) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.trails) == 0
}
