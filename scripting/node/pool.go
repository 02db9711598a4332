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
	pool  *pool // that owns it
	op    stall.Op
	turn  chan struct{} // of pool, held by the current call; nil if the pool has none
	// call is the current call, to which ctx refers. It is nil outside of calls.
	call *call

	// Memory of a call, reused for each batch.
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

// maxWaiting is the maximum number of additional VMs in a pool, one for each VM
// that waits for external events.
const maxWaiting = 64

// pool lends VMs. It is limited, so that a full pool causes backpressure, and
// grows on demand. It uses channels and not sync.Pool, which would drop VMs at
// every garbage collection. Both channels have room for VMs that replace
// waiting ones; the unused room in slots is filled up.
type pool struct {
	idle  chan *worker
	slots chan struct{} // one for each VM that exists
	make  func() (*worker, error)
	count atomic.Int64
	// turn is shared by the pools of two versions whose calls must not overlap: the
	// call that runs holds a value in it. nil: there is no such pool.
	turn atomic.Pointer[chan struct{}]

	mu      sync.Mutex
	spare   int // slots that are still filled up
	extra   int // slots that are no longer filled up
	waiting int // workers that wait for external events
	peak    int // maximum of waiting since the last sweep
}

// workers returns the maximum number of working VMs in a pool.
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

// get borrows a worker, which must be returned with put. The error is the
// context's, or that of creating a VM.
func (p *pool) get(ctx context.Context) (w *worker, err error) {
	turn := p.turn.Load()
	if turn == nil {
		return p.lend(ctx)
	}
	select {
	case *turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot get a free VM: %w", context.Cause(ctx))
	}
	if w, err = p.lend(ctx); err != nil {
		<-*turn
		return nil, err
	}
	w.turn = *turn
	return w, nil
}

func (p *pool) lend(ctx context.Context) (*worker, error) {
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

// put returns a worker. It discards a broken one, and reports whether it did.
func (p *pool) put(w *worker) (discarded bool) {
	if turn := w.turn; turn != nil {
		w.turn = nil
		defer func() { <-turn }()
	}
	if w.vm.Broken() {
		p.count.Add(-1)
		<-p.slots
		return true
	}
	p.idle <- w
	return false
}

// wait records that a worker waits for external events. Another VM may replace
// it meanwhile.
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

// resume records that a worker no longer waits. The VM that replaced it stays
// until a sweep finds that it was not needed; otherwise, a VM would be created
// for every request.
func (p *pool) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// shrink discards VMs that replaced waiting ones, if fewer VMs waited since the
// last sweep.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.extra > p.peak; p.extra-- {
		select {
		case p.slots <- struct{}{}: // no VM was created for it
		default:
			select {
			case <-p.idle:
				p.count.Add(-1)
			default:
				return // all of them are in use: next time
			}
		}
		p.spare++
	}
	p.peak = p.waiting
}
