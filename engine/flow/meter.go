package flow

import (
	"context"
	"runtime/pprof"
	"sync/atomic"
)

// NodeLabel is the name of the goroutine label with the ID of the node that a
// goroutine works for. CPU profiles contain it.
const NodeLabel = "node"

// Labelled returns ctx with the label of a node, for goroutines of the node.
func Labelled(ctx context.Context, node string) context.Context {
	return pprof.WithLabels(ctx, pprof.Labels(NodeLabel, node))
}

// Meter counts the batches of one node while it is attached to the Stats of the
// node. Meanwhile, goroutines in calls of the node have the label of the node, so
// that a CPU profile attributes their time to it. All methods are safe for
// concurrent use.
type Meter struct {
	In, Out Counts        // batches that arrived, accepted or not, and that the node sent, once for all receivers
	Refused atomic.Uint64 // batches that arrived and that the node did not accept

	// labels has the label of the node. It is stored because pprof.SetGoroutineLabels takes
	// labels only from a context.
	labels context.Context
}

// Counts are batches and their bytes, as Metrics.Bytes and Logs.Bytes of package
// batch count them.
type Counts struct{ Batches, Bytes atomic.Uint64 }

// NewMeter returns the meter of a node.
func NewMeter(node string) *Meter {
	return &Meter{labels: Labelled(context.Background(), node)}
}

func (c *Counts) add(bytes int) {
	c.Batches.Add(1)
	c.Bytes.Add(uint64(bytes))
}

// SetMeter attaches m; nil detaches the meter.
func (s *Stats) SetMeter(m *Meter) { s.meter.Store(m) }

// arrive counts a batch that arrives and labels the goroutine, which is about to call
// the component. The caller restores the label when the call has returned; see
// pending.send.
func (m *Meter) arrive(bytes int) {
	m.In.add(bytes)
	pprof.SetGoroutineLabels(m.labels)
}

// answer counts the result of a call.
func (m *Meter) answer(err error) {
	if !tookBatch(err) {
		m.Refused.Add(1)
	}
}

// resume labels the goroutine when a call of another node has returned. m may be nil.
func (m *Meter) resume() {
	if m != nil {
		pprof.SetGoroutineLabels(m.labels)
	}
}
