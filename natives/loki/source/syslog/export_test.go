package syslog

import (
	"context"
	"net/netip"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/rule"
)

// Resolve makes names the answer for the host names of senders.
func Resolve(c component.Component, names func(addr string) string) {
	c.(*Component).resolve = func(_ context.Context, addr string) string { return names(addr) }
	for _, l := range c.(*Component).wanted() {
		l.hosts.resolve = c.(*Component).resolve
	}
}

// Frame is a message as the framer finds it.
type Frame struct {
	Msg string
	Cut bool
}

// Framer is a framer, for tests.
type Framer struct{ f framer }

// NewFramer returns one.
func NewFramer(limit int, raw, datagram, null bool) *Framer {
	f := &Framer{framer{max: limit, raw: raw, datagram: datagram, delim: '\n'}}
	if null {
		f.f.delim = 0
	}
	return f
}

// Room is how much more than max a framer wants to see.
const Room = room

// All returns the messages in b and how much of b they took.
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

// Lines makes lines of messages without a connection.
type Lines struct{ x *lines }

// NewLines returns Lines of a listener of c.
func NewLines(c component.Component, rules rule.Rules) *Lines {
	l := c.(*Component).wanted()[0]
	x := &lines{l: l, source: 1}
	x.setSettings(newSettings(l.settings.Load().args, rules, l.c.forgot))
	return &Lines{x}
}

// Add adds what b has and returns the number of lines.
func (l *Lines) Add(b []byte, now time.Time) int {
	_, _ = l.x.addAll(b, true, now)
	return l.x.takeBatch().Len()
}

// Put puts datagrams of n bytes into a queue of size blocks until there is no
// room, and returns how many there were.
func Put(n, size int) int {
	q := &queue{kick: make(chan struct{}, 1)}
	for k := 0; ; k++ {
		if !q.put(make([]byte, n), netip.Addr{}, size) {
			return k
		}
	}
}

// Socket is what datagrams are read of.
type Socket = socket

// ReadUDP reads of conn as the first listener of c does, and returns what is in
// the queue then.
func ReadUDP(c component.Component, conn Socket) (queued int) {
	q := &queue{kick: make(chan struct{}, 1)}
	c.(*Component).wanted()[0].readUDP(context.Background(), conn, q)
	return q.left()
}

// Remembered returns the bytes of the labels that streams are remembered by.
func (l *Lines) Remembered() (bytes int) {
	for key := range l.x.known {
		bytes += len(key)
	}
	return bytes
}
