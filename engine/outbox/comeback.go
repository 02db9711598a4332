package outbox

import "sync"

// comeback notifies waiting senders when the receiver accepts data again. The
// zero value is ready to use. It is safe for concurrent use.
type comeback struct {
	mu      sync.Mutex
	failing bool          // an attempt has failed since data was last accepted
	back    chan struct{} // nil if next was not called since it was closed
}

// fail records a failed attempt.
func (c *comeback) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = true
}

// succeed records that data was accepted.
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

// Comeback returns a channel that is closed when data is accepted for the first
// time after a failure. Call it before an attempt, because this may happen
// during the attempt.
func (b *Outbox) Comeback() <-chan struct{} { return b.comeback.next() }
