package plugin

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// call is a batch that the component processes.
type call struct {
	n      *node
	id     uint64
	ack    *batch.Ack
	cancel context.CancelFunc

	mu       sync.Mutex
	answered bool
	outputs  []output
}

// output is a batch that the component has sent during the call.
type output struct {
	receiver uint32
	batch    link.Batch
}

// callKey is the key of the *call in the context of a call.
type callKey struct{}

// called begins a call. Frames are decoded in the order in which they arrive.
func (n *node) called(m *protocol.Call) error {
	b, err := link.Decode(n.dec, m.Batch)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	of := b.Origin()
	of.Source = n.sources.local(of.Source)
	b = b.WithOrigin(of)
	if m.Batch.Ack {
		b = n.acks.Arrived(m.Id, b, func() {
			n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Acked{Acked: &protocol.Acked{Id: m.Id}}})
		})
	}
	c := &call{n: n, id: m.Id, ack: b.Ack()}
	ctx, cancel := context.WithCancel(context.WithValue(n.stream.Context(), callKey{}, c))
	c.cancel = cancel
	n.mu.Lock()
	if len(n.calls) >= int(n.open.Calls) || n.calls[m.Id] != nil {
		n.mu.Unlock()
		cancel()
		return status.Errorf(codes.InvalidArgument, "call %d exceeds the %d calls in Open, or has the number of another", m.Id, n.open.Calls)
	}
	n.calls[m.Id] = c
	n.mu.Unlock()
	n.wg.Go(func() {
		defer cancel()
		c.answer(n.consume(ctx, b))
	})
	return nil
}

// consume passes a batch to the component.
func (n *node) consume(ctx context.Context, b link.Batch) error {
	err := guard(func() error {
		if b.Metrics != nil {
			if c, ok := n.comp.(flow.MetricsConsumer); ok {
				return c.ConsumeMetrics(ctx, b.Metrics)
			}
		} else if c, ok := n.comp.(flow.LogsConsumer); ok {
			return c.ConsumeLogs(ctx, b.Logs)
		}
		return fmt.Errorf("BUG: %s does not consume this signal", n.reg.Name)
	})
	if p, ok := err.(*panicError); ok {
		n.ended(p) // the component is replaced, as after a panic in weir
	}
	return err
}

// answer ends the call. Its outputs are sent first, if it has succeeded.
func (c *call) answer(err error) {
	a := &protocol.Answer{Id: c.id}
	if err != nil {
		a.Error = err.Error()
	}
	c.mu.Lock()
	outputs := c.outputs
	c.answered, c.outputs = true, nil
	c.mu.Unlock()
	if err == nil {
		for _, o := range outputs {
			_ = c.n.sendBatch(o.batch, o.batch.Ack() != nil, func(m *protocol.Batch) *protocol.ToWeir {
				return &protocol.ToWeir{Message: &protocol.ToWeir_Output{Output: &protocol.Output{Call: c.id, Receiver: o.receiver, Batch: m}}}
			}) // after an error, the receiving loop ends
		}
	}
	c.n.mu.Lock()
	delete(c.n.calls, c.id)
	c.n.mu.Unlock()
	c.n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Answer{Answer: a}})
	if c.ack != nil {
		c.n.acks.Answered(c.id, err == nil)
	}
}

// output keeps a batch as an output of the call. It returns false if it is not an output
// of this call: the call has been answered, or the lines are acknowledged independently
// of its batch.
func (c *call) output(receiver uint32, b link.Batch) bool {
	if ack := b.Ack(); ack != nil && ack != c.ack {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.answered {
		c.outputs = append(c.outputs, output{receiver, b})
	}
	return !c.answered
}
