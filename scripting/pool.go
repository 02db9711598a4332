package scripting

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/weir-run/weir/scripting/view"
)

// worker is a VM with its window on batches.
type worker struct {
	vm  VM
	win view.Metrics
	// call is the call at hand, nil outside of calls: what ctx is about.
	call *call
}

// pool lends VMs: bounded, so that a full pool is backpressure, and growing on
// demand. It is channels and no sync.Pool, which would drop VMs at every
// garbage collection.
type pool struct {
	idle  chan *worker
	slots chan struct{} // one for each VM that exists
	make  func() (*worker, error)
	count atomic.Int64
}

func newPool(newWorker func() (*worker, error)) *pool {
	n := 2 * runtime.GOMAXPROCS(0)
	return &pool{idle: make(chan *worker, n), slots: make(chan struct{}, n), make: newWorker}
}

// get borrows a worker, which must be put back. The error is the context's,
// or that of making a VM.
func (p *pool) get(ctx context.Context) (*worker, error) {
	select {
	case w := <-p.idle:
		return w, nil
	default:
	}
	select {
	case w := <-p.idle:
		return w, nil
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot get a free VM: %w", context.Cause(ctx))
	}
	w, err := p.make()
	if err != nil {
		<-p.slots
		return nil, err
	}
	p.count.Add(1)
	return w, nil
}

// put gives a worker back. A broken one is thrown away, and put reports that.
func (p *pool) put(w *worker) (discarded bool) {
	if w.vm.Broken() {
		p.count.Add(-1)
		<-p.slots
		return true
	}
	p.idle <- w
	return false
}
