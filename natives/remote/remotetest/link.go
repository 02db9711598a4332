package remotetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// ports is the last port that FreePort tried. Linux assigns ports from 32768.
var ports atomic.Uint32

// FreePort returns a port of 127.0.0.1 that is free, and that no other test of the
// process gets.
func FreePort(t testing.TB) int {
	t.Helper()
	ports.CompareAndSwap(0, 20000+rand.Uint32N(10000))
	for range 100 {
		port := int(ports.Add(1))
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// Link forwards TCP connections to a server, until a partition.
type Link struct {
	Addr string // where it listens

	mu      sync.Mutex
	changed *sync.Cond
	stalled bool
	closed  bool
	conns   map[net.Conn]bool
}

// NewLink returns a Link to an address, which ends with the test.
func NewLink(t testing.TB, to string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{Addr: listener.Addr().String(), conns: map[net.Conn]bool{}}
	l.changed = sync.NewCond(&l.mu)
	var wg sync.WaitGroup
	pipe := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if l.wait(); n > 0 {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				l.wait()
				s, err := net.Dial("tcp", to)
				if err != nil {
					c.Close()
					return
				}
				l.mu.Lock()
				if l.closed {
					c.Close()
					s.Close()
				}
				l.conns[c], l.conns[s] = true, true
				l.mu.Unlock()
				wg.Go(func() { pipe(s, c) })
				pipe(c, s)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.mu.Lock()
		l.stalled, l.closed = false, true
		for c := range l.conns {
			c.Close()
		}
		l.changed.Broadcast()
		l.mu.Unlock()
		wg.Wait()
	})
	return l
}

// wait waits until the partition is over.
func (l *Link) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.stalled {
		l.changed.Wait()
	}
}

// Partition stops all traffic without ending connections, or lets it continue.
func (l *Link) Partition(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = on
	l.changed.Broadcast()
}
