package syslog

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/server"
)

// kernelBuffer is the requested size of the kernel's buffer for datagrams that
// arrive while nothing reads.
const kernelBuffer = 1 << 20

func (l *listener) serveUDP(ctx, base context.Context, address string, senders *sync.WaitGroup) (*loan, error) {
	conn, giveBack, err := open(ctx, l, func() (*net.UDPConn, error) {
		pc, err := net.ListenPacket("udp", address)
		if err != nil {
			return nil, server.CannotListen(address, l.setting(), err)
		}
		return pc.(*net.UDPConn), nil
	})
	if err != nil {
		return nil, err
	}
	defer giveBack()
	_ = conn.SetReadBuffer(kernelBuffer) // the system may limit the size
	l.listening(conn.LocalAddr())
	q := &queue{kick: make(chan struct{}, 1)}
	reading, read := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer read()
		l.readUDP(ctx, conn, q)
	}()
	senders.Go(func() {
		l.sendUDP(reading, base, q)
		left := q.left()
		l.c.unaccepted.Add(-int64(left))
		l.c.o.Stats.DropLines("stopped", left)
	})
	borrowed := l.hold(ctx)
	_ = conn.SetReadDeadline(time.Unix(1, 0)) // makes readUDP read the remaining datagrams and return
	<-reading.Done()
	conn.Close()
	return borrowed, nil
}

// socket is a *net.UDPConn.
type socket interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	SetReadDeadline(t time.Time) error
}

// maxDatagram is the maximum size of a datagram.
const maxDatagram = 64 << 10

// When a listener stops, the kernel still has datagrams. They are read until none
// arrives for drainIdle, but at most for drainMost, because senders may continue.
const (
	drainIdle = 50 * time.Millisecond
	drainMost = 500 * time.Millisecond
)

// readUDP adds datagrams to q until a deadline ends its reading, and then the
// remaining ones.
func (l *listener) readUDP(ctx context.Context, conn socket, q *queue) {
	buf := make([]byte, maxDatagram)
	full, failing := false, false
	var most time.Time // zero until it drains
	for {
		if !most.IsZero() {
			next := time.Now().Add(drainIdle)
			if next.After(most) {
				return
			}
			_ = conn.SetReadDeadline(next) // an error also fails the read
		}
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		switch {
		case err == nil:
		case !most.IsZero() || errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			most = time.Now().Add(drainMost)
			continue
		default: // for example, a datagram that was never sent was returned
			if !failing {
				l.c.o.Logger.Warn("cannot read datagrams", "listener", l.key, "err", err)
			}
			failing = true
			_ = clock.Sleep(ctx, l.c.o.Clock, 5*time.Millisecond)
			continue
		}
		failing = false
		l.c.metrics.received.Add(float64(n))
		put := q.put(buf[:n], from.Addr(), l.settings.Load().args.UDPQueueSize)
		if !put && !full {
			l.c.o.Logger.Warn("datagrams are dropped: the receivers do not accept as fast as they come, and udp_queue_size blocks wait", "listener", l.key)
		}
		if full = !put; full {
			l.c.o.Stats.DropLines("queue_full", 1)
		} else {
			l.c.unaccepted.Add(1)
		}
	}
}

// sendUDP sends the content of q until reading ends and q is empty.
func (l *listener) sendUDP(reading, base context.Context, q *queue) {
	x := &lines{l: l, source: l.takeSource()}
	defer l.giveSource(x.source)
	for {
		b := q.takeBlock()
		if b == nil {
			select {
			case <-q.kick:
				continue
			case <-reading.Done():
			}
			if b = q.takeBlock(); b == nil {
				return
			}
		}
		s := l.settings.Load()
		x.setSettings(s)
		now := l.c.o.Clock.Now()
		for _, d := range b.grams {
			x.remote = l.senderLabels(base, s, d.from)
			_, err := x.addAll(b.data[d.at:d.at+d.n], true, now)
			x.framer.skip, x.framer.discard = 0, false
			if err != nil {
				l.c.o.Stats.DropLines("framing", 1)
			}
		}
		l.c.unaccepted.Add(-int64(len(b.grams)))
		if b := x.takeBatch(); b != nil && !l.c.send(base, b) {
			return
		}
	}
}

// queue is a bounded queue of datagrams. It is safe for concurrent use.
type queue struct {
	kick chan struct{} // capacity 1: has a value if something was added

	mu     sync.Mutex
	blocks []*block
}

// blockSize is the size of the datagrams that are sent as one batch.
const blockSize = 64 << 10

// block is a sequence of datagrams.
type block struct {
	data  []byte
	grams []datagram
}

type datagram struct {
	from  netip.Addr
	at, n int
}

// put copies a datagram into the queue. It returns false if there are size blocks
// and the last one has no space.
func (q *queue) put(b []byte, from netip.Addr, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.blocks)
	if n == 0 || len(q.blocks[n-1].data)+len(b) > blockSize {
		if n >= size {
			return false
		}
		q.blocks = append(q.blocks, new(block))
		n++
	}
	last := q.blocks[n-1]
	last.grams = append(last.grams, datagram{from, len(last.data), len(b)})
	last.data = append(last.data, b...)
	select {
	case q.kick <- struct{}{}:
	default:
	}
	return true
}

// takeBlock returns the next block, or nil.
func (q *queue) takeBlock() *block {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.blocks) == 0 {
		return nil
	}
	b := q.blocks[0]
	q.blocks[0] = nil
	q.blocks = q.blocks[1:]
	return b
}

// left empties the queue and returns the number of datagrams in it.
func (q *queue) left() (n int) {
	for b := q.takeBlock(); b != nil; b = q.takeBlock() {
		n += len(b.grams)
	}
	return n
}
