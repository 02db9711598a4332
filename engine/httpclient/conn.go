package httpclient

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// conn is a connection. One request at a time uses it. An idle connection has
// no buffers.
type conn struct {
	net.Conn
	address string
	used    bool          // a response was received
	broken  bool          // writing failed
	since   time.Time     // when it became idle
	in      *bufio.Reader // reads from the conn
	room    int64         // bytes that may still be read of the response header

	raw  syscall.RawConn    // nil: it cannot be checked without waiting
	look func(file uintptr) // reads a byte, or sets err; created once, because a closure allocates
	err  error
}

func newConn(nc net.Conn, address string) *conn {
	c := &conn{Conn: newSocket(nc), address: address}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return c
	}
	if raw, err := sc.SyscallConn(); err == nil {
		var one [1]byte
		c.raw = raw
		c.look = func(file uintptr) { _, c.err = readNow(file, one[:]) }
	}
	return c
}

// quiet reports whether nothing arrived since the last response: neither the
// end of the connection, nor data that would be mistaken for the response to
// the next request, such as a 408 for an idle connection. If something did, the
// connection cannot be used.
func (c *conn) quiet() bool {
	if c.raw == nil {
		return true // it leads to weir itself
	}
	err := c.raw.Control(c.look)
	return err == nil && c.err == syscall.EAGAIN
}

// maxHead is the maximum size of a response header, as in http.Transport.
const maxHead = 10 << 20

var errHead = errors.New("the head of the answer is too long")

// Read reads from the connection.
func (c *conn) Read(buf []byte) (int, error) {
	if c.room <= 0 {
		return 0, errHead
	}
	n, err := c.Conn.Read(buf)
	c.room -= int64(n)
	return n, err
}

// Write writes to the connection.
func (c *conn) Write(buf []byte) (int, error) {
	n, err := c.Conn.Write(buf)
	c.broken = c.broken || err != nil
	return n, err
}

var (
	readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	writers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// free releases the buffer. The connection is no longer read.
func (c *conn) free() {
	if c.in != nil {
		c.in.Reset(nil)
		readers.Put(c.in)
		c.in = nil
	}
}

// maxWhole is the maximum size of a request that is written in one call.
const maxWhole = 256 << 10

// write writes a request.
func (c *conn) write(req *http.Request) error {
	if req.ContentLength < 0 || req.ContentLength > maxWhole {
		out := bufio.NewWriterSize(c, 64<<10)
		if err := req.Write(out); err != nil {
			return err
		}
		return out.Flush()
	}
	b := writers.Get().(*bytes.Buffer)
	defer writers.Put(b)
	b.Reset()
	if err := req.Write(b); err != nil {
		return err
	}
	_, err := c.Write(b.Bytes())
	return err
}
