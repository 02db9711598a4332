package file

import (
	"context"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// pendingAcks are the acknowledgements of batches that a receiver still keeps.
type pendingAcks struct {
	mu      sync.Mutex
	open    map[*batch.Ack]struct{}
	flushed bool
	changed chan struct{} // gets a signal when a batch is done
}

func newPendingAcks() *pendingAcks {
	return &pendingAcks{open: map[*batch.Ack]struct{}{}, changed: make(chan struct{}, 1)}
}

// add returns an Ack that calls done.
func (p *pendingAcks) add(done func()) *batch.Ack {
	var a *batch.Ack
	a = batch.NewAck(func() {
		done()
		p.mu.Lock()
		delete(p.open, a)
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	})
	p.mu.Lock()
	p.open[a] = struct{}{}
	p.mu.Unlock()
	return a
}

// wait asks all receivers that keep lines to flush them. It returns when no
// receiver keeps any, or when ctx ends.
func (p *pendingAcks) wait(ctx context.Context) {
	for {
		p.mu.Lock()
		var all []*batch.Ack
		for a := range p.open {
			all = append(all, a)
		}
		flush := !p.flushed
		p.flushed = true
		p.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, a := range all {
			if flush {
				a.Flush()
			}
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return
		}
	}
}
