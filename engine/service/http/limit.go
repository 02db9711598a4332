package http

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxConnections is how many connections over TCP there may be; further ones
	// are closed at once. The control socket has a listener of its own.
	maxConnections = 1000
	// readTime is how long reading a request may take, its body included.
	readTime = 30 * time.Second
	// stuckTime is how long one write may wait for a client that does not read. An
	// answer as a whole may take any time: profiles and taps do.
	stuckTime = 30 * time.Second
)

// client is a connection over TCP.
type client struct {
	net.Conn
	open   *atomic.Int64
	closed sync.Once
	until  atomic.Pointer[time.Time] // the deadline of writes that a handler set, nil for none
}

// Write writes b, unless nothing of it can be written for too long.
func (c *client) Write(b []byte) (int, error) {
	deadline := time.Now().Add(stuckTime)
	if t := c.until.Load(); t != nil && !t.IsZero() && t.Before(deadline) {
		deadline = *t
	}
	_ = c.Conn.SetWriteDeadline(deadline) // fails with the write
	return c.Conn.Write(b)
}

// SetWriteDeadline also ends a write that is in progress.
func (c *client) SetWriteDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *client) SetDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetDeadline(t)
}

// Close makes room for another connection.
func (c *client) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
