package node

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/stall"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// worker is a VM with its window on batches.
type worker struct {
	vm    scripting.VM
	win   view.Metrics
	lines view.Logs
	pool  *pool // that it is of
	op    stall.Op
	// call is the call at hand, nil outside of calls: what ctx is about.
	call *call

	// What a call needs, so that none is made for each batch.
	at     call
	limits scripting.Call
	failed func(int, *scripting.Error) bool
	series func(int, *view.Series) error
	stream func(int, *view.Series) error
}

// newWorker returns a worker without a VM.
func newWorker() *worker {
	w := &worker{}
	w.failed, w.series, w.stream = w.at.failed, w.at.runSeries, w.at.runStream
	return w
}

// maxWaiting is how many VMs a pool may have more than for its work, one for
// each that waits for the outside.
const maxWaiting = 64

// pool lends VMs: bounded, so that a full pool is backpressure, and growing on
// demand. It is channels and no sync.Pool, which would drop VMs at every
// garbage collection. Both channels have room for VMs in the place of those
// that wait for the outside; slots is filled up by as many until there are such.
type pool struct {
	idle  chan *worker
	slots chan struct{} // one for each VM that exists
	make  func() (*worker, error)
	count atomic.Int64

	mu      sync.Mutex
	spare   int // slots that are still filled up
	extra   int // that were not filled up again
	waiting int // workers that wait for the outside
	peak    int // of waiting since the last sweep
}

// workers is how many VMs a pool may have for its work.
func workers() int { return 2 * runtime.GOMAXPROCS(0) }

// newPool returns a pool of n VMs, and of up to extra more while VMs wait.
func newPool(n, extra int, newWorker func() (*worker, error)) *pool {
	p := &pool{
		idle: make(chan *worker, n+extra), slots: make(chan struct{}, n+extra), make: newWorker, spare: extra,
	}
	for range extra {
		p.slots <- struct{}{}
	}
	return p
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
	w.pool = p
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

// wait says that a worker waits for the outside: there may be another VM in its
// place.
func (p *pool) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting++
	p.peak = max(p.peak, p.waiting)
	if p.waiting > p.extra && p.spare > 0 {
		p.spare--
		p.extra++
		<-p.slots
	}
}

// resume says that a worker waits no more. The VM in its place stays until a
// sweep finds that so many were not needed: they would else be made anew for
// every request.
func (p *pool) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// shrink gives up VMs that stood in for waiting ones, as far as fewer waited
// since the last sweep.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.extra > p.peak; p.extra-- {
		select {
		case p.slots <- struct{}{}: // it never came to a VM
		default:
			select {
			case <-p.idle:
				p.count.Add(-1)
			default:
				return // all of them work: next time
			}
		}
		p.spare++
	}
	p.peak = p.waiting
}
