package server

import (
	"net"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// door accepts connections on one address and passes them to the current
// server, so that settings change without closing the port.
type door struct {
	net.Listener
	address string // as configured
	closed  chan struct{}
	once    sync.Once
}

func open(address string) (*door, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &door{Listener: l, address: address, closed: make(chan struct{})}, nil
}

// Close makes accept return.
func (d *door) Close() error {
	var err error
	d.once.Do(func() {
		close(d.closed)
		err = d.Listener.Close()
	})
	return err
}

// accept calls hand with every connection until the door is closed. failed is
// called with the first of several consecutive errors, and with nil when they
// end.
func (d *door) accept(c clock.Clock, slots *slots, hand func(net.Conn), failed func(error)) {
	pause := time.Duration(0)
	for {
		if !slots.acquireSlot(d.closed) {
			return
		}
		conn, err := d.Accept()
		if err == nil {
			if pause > 0 {
				failed(nil)
			}
			pause = 0
			slots.opened(1)
			hand(&counted{Conn: conn, slots: slots})
			continue
		}
		slots.releaseSlot()
		select {
		case <-d.closed:
			return
		default:
		}
		if pause == 0 { // usually there are no file descriptors left
			failed(err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		t := c.NewTimer(pause)
		select {
		case <-t.C():
		case <-d.closed:
			t.Stop()
			return
		}
	}
}

// slots counts connections, up to a limit that may change.
type slots struct {
	mu   sync.Mutex
	used int // used by connections, and by doors that wait for one
	open int // open connections
	// reached is the number of times that the limit was reached.
	reached int
	limit   int           // 0 means no limit
	freed   chan struct{} // closed and replaced when there may be room again
}

func newSlots() *slots { return &slots{freed: make(chan struct{})} }

// acquireSlot waits for room. It returns false if closed is closed first.
func (s *slots) acquireSlot(closed <-chan struct{}) bool {
	for waited := false; ; waited = true {
		s.mu.Lock()
		if s.limit == 0 || s.used < s.limit {
			s.used++
			s.mu.Unlock()
			return true
		}
		if !waited {
			s.reached++
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-closed:
			return false
		}
	}
}

func (s *slots) releaseSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	close(s.freed)
	s.freed = make(chan struct{})
}

func (s *slots) opened(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

func (s *slots) setLimit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = n
	close(s.freed)
	s.freed = make(chan struct{})
}

// counted is a connection that releases its slot when it is closed.
type counted struct {
	net.Conn
	slots *slots
	once  sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.slots.opened(-1)
		c.slots.releaseSlot()
	})
	return c.Conn.Close()
}

// queue is the net.Listener of one http.Server. Its connections come from the
// current door.
type queue struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func newQueue(addr net.Addr) *queue {
	return &queue{conns: make(chan net.Conn), closed: make(chan struct{}), addr: addr}
}

// Accept waits for a connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept return net.ErrClosed.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns the address of the first connection.
func (q *queue) Addr() net.Addr { return q.addr }
