package plugin

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"weak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// receivers are the receivers in the arguments of a node. A receiver of weir is the same
// *flow.Receiver in all arguments.
type receivers struct {
	n *node

	mu       sync.Mutex
	byNumber map[uint32]*flow.Receiver
}

// set returns the receivers of arguments, in order.
func (rs *receivers) set(in *protocol.Arguments) (out []*flow.Receiver) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byNumber == nil {
		rs.byNumber = map[uint32]*flow.Receiver{}
	}
	for _, r := range in.GetReceivers() {
		recv := rs.byNumber[r.Number]
		if recv == nil {
			recv = flow.NewReceiver(r.Node, batch.Signals(r.Accepts), nil, func(*flow.PanicError) {})
			recv.Set(&proxy{rs.n, r.Number})
			rs.byNumber[r.Number] = recv
		}
		recv.SetAccepts(batch.Signals(r.Accepts))
		out = append(out, recv)
	}
	return out
}

// proxy sends batches to a receiver of weir.
type proxy struct {
	n      *node
	number uint32
}

// ConsumeMetrics sends b.
func (p *proxy) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	return p.consume(ctx, link.Batch{Metrics: b}, weak.Make(b), func(f func()) {
		runtime.AddCleanup(b, func(struct{}) { f() }, struct{}{})
	})
}

// ConsumeLogs sends b.
func (p *proxy) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	return p.consume(ctx, link.Batch{Logs: b}, weak.Make(b), func(f func()) {
		runtime.AddCleanup(b, func(struct{}) { f() }, struct{}{})
	})
}

// consume sends a batch. key identifies it without keeping it in memory, and onGone calls
// a function when nobody refers to it any more.
func (p *proxy) consume(ctx context.Context, b link.Batch, key any, onGone func(func())) error {
	if c, ok := ctx.Value(callKey{}).(*call); ok && c.n == p.n && c.output(p.number, b) {
		return nil
	}
	n, id := p.n, p.n.lastID.Add(1)
	answer := make(chan *protocol.Answer, 1)
	n.mu.Lock()
	if n.gone {
		n.mu.Unlock()
		return errGone
	}
	n.sends[id] = answer
	retry, again := n.refused[key]
	delete(n.refused, key)
	n.mu.Unlock()

	message := func(m *protocol.Batch) *protocol.ToWeir {
		return &protocol.ToWeir{Message: &protocol.ToWeir_Send{Send: &protocol.Send{Id: id, Receiver: p.number, Batch: m, Retry: retry}}}
	}
	original := id
	var err error
	if again {
		original = retry
		err = n.send(message(nil))
	} else {
		held := n.acks.Hold(id, b, func() {
			n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Flush{Flush: &protocol.Flush{Id: id}}})
		})
		err = n.sendBatch(b, held, message)
	}
	if err != nil { // the stream has ended, so nobody waits for it
		n.mu.Lock()
		delete(n.sends, id)
		n.mu.Unlock()
		n.acks.Acked(original)
		return err
	}
	var a *protocol.Answer
	select {
	case a = <-answer:
	case <-ctx.Done():
		n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Cancel{Cancel: &protocol.Cancel{Id: id}}})
		a = <-answer // only weir knows whether the batch was accepted
	}
	switch {
	case a.Error == "":
		return nil
	case a.Partial:
		n.mu.Lock()
		n.refused[key] = original
		n.mu.Unlock()
		if !again {
			onGone(func() { n.forget(key) })
		}
	default:
		n.acks.Acked(original)
	}
	return errors.New(a.Error)
}

// forget tells weir that a batch that was refused in part will not be sent again.
func (n *node) forget(key any) {
	n.mu.Lock()
	id, ok := n.refused[key]
	delete(n.refused, key)
	gone := n.gone
	n.mu.Unlock()
	if ok && !gone {
		n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Forget{Forget: &protocol.Forget{Id: id}}})
	}
}
