package outbox

import "sync"

// comeback tells senders that pause that the receiver accepts something again.
// The zero value is ready; it is safe for concurrent use.
type comeback struct {
	mu      sync.Mutex
	failing bool          // since something was accepted
	back    chan struct{} // nil: nobody has asked since it was closed
}

// fail says that an attempt failed.
func (c *comeback) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = true
}

// succeed says that something was accepted.
func (c *comeback) succeed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.failing {
		return
	}
	c.failing = false
	if c.back != nil {
		close(c.back)
		c.back = nil
	}
}

func (c *comeback) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.back == nil {
		c.back = make(chan struct{})
	}
	return c.back
}

// Comeback returns a channel that is closed when something is accepted for the
// first time after a failure. Call it before an attempt, during which that may
// happen.
func (b *Outbox) Comeback() <-chan struct{} { return b.comeback.next() }
