package remotewrite

import (
	"context"
	"sync"
)

// inflight limits the number of concurrent requests of an endpoint. The zero
// value is ready to use. All methods are safe for concurrent use.
type inflight struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when a request ends; nil if nobody waits
}

// begin reports whether another request may be sent. If so, the caller must call
// end when the request is done.
func (f *inflight) begin(most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n >= most {
		return false
	}
	f.n++
	return true
}

// wait waits until another request may be sent. It returns false if ctx ends
// first.
func (f *inflight) wait(ctx context.Context, most int) bool {
	for !f.begin(most) {
		ended := f.next()
		if f.begin(most) {
			return true
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// next returns a channel that is closed when the next request ends.
func (f *inflight) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	return f.ended
}

func (f *inflight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
}

// idle reports whether another request may be sent.
func (f *inflight) idle(most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n < most
}
