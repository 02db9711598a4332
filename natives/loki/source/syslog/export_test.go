package syslog

import (
	"context"
	"net/netip"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/rule"
)

// Resolve sets the function that resolves the host names of senders.
func Resolve(c component.Component, names func(addr string) string) {
	c.(*Component).resolve = func(_ context.Context, addr string) string { return names(addr) }
	for _, l := range c.(*Component).wanted() {
		l.hosts.resolve = c.(*Component).resolve
	}
}

// Frame is a message that the framer has found.
type Frame struct {
	Msg string
	Cut bool
}

// Framer is a framer for tests.
type Framer struct{ f framer }

// NewFramer returns a Framer.
func NewFramer(limit int, raw, datagram, null bool) *Framer {
	f := &Framer{framer{max: limit, raw: raw, datagram: datagram, delim: '\n'}}
	if null {
		f.f.delim = 0
	}
	return f
}

// Room is the number of bytes in addition to max that a framer needs.
const Room = room

// All returns the messages in b and the number of bytes that they took.
func (f *Framer) All(b []byte, end bool) (out []Frame, n int, err error) {
	for {
		m, took, ok, err := f.f.next(b[n:], end)
		n += took
		switch {
		case err != nil:
			return out, n, err
		case ok:
			out = append(out, Frame{string(m.msg), m.cut})
		case took == 0:
			return out, n, nil
		}
	}
}

// Lines converts messages to lines without a connection.
type Lines struct{ x *lines }

// NewLines returns Lines for a listener of c.
func NewLines(c component.Component, rules rule.Rules) *Lines {
	l := c.(*Component).wanted()[0]
	x := &lines{l: l, source: 1}
	x.setSettings(newSettings(l.settings.Load().args, rules, l.c.forgot))
	return &Lines{x}
}

// Add adds the messages in b and returns the number of lines.
func (l *Lines) Add(b []byte, now time.Time) int {
	_, _ = l.x.addAll(b, true, now)
	return l.x.takeBatch().Len()
}

// Put puts datagrams of n bytes into a queue of size blocks until it is full, and
// returns their number.
func Put(n, size int) int {
	q := &queue{kick: make(chan struct{}, 1)}
	for k := 0; ; k++ {
		if !q.put(make([]byte, n), netip.Addr{}, size) {
			return k
		}
	}
}

// Socket is the interface from which datagrams are read.
type Socket = socket

// ReadUDP reads from conn like the first listener of c, and returns the number of
// queued datagrams.
func ReadUDP(c component.Component, conn Socket) (queued int) {
	q := &queue{kick: make(chan struct{}, 1)}
	c.(*Component).wanted()[0].readUDP(context.Background(), conn, q)
	return q.left()
}

// Remembered returns the size of the keys of the cached streams.
func (l *Lines) Remembered() (bytes int) {
	for key := range l.x.known {
		bytes += len(key)
	}
	return bytes
}
