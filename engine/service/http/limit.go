package http

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxConnections is the maximum number of connections over TCP. Further
	// connections are closed immediately. The control socket has its own listener.
	maxConnections = 1000
	// readTime is the time limit for reading a request, including its body.
	readTime = 30 * time.Second
	// stuckTime is the time limit for one write to a client that does not read. A
	// whole response may take any time, as profiles and taps do.
	stuckTime = 30 * time.Second
)

// client is a connection over TCP.
type client struct {
	net.Conn
	open   *atomic.Int64
	closed sync.Once
	until  atomic.Pointer[time.Time] // the deadline of writes that a handler set, or nil
}

// Write writes b, unless no data can be written for too long.
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

// Close closes the connection and makes room for another one.
func (c *client) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
