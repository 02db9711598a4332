package http

import (
	"context"
	"net"
	"sync"
)

// memoryListener accepts connections from dial, without a socket.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func newMemoryListener() *memoryListener {
	l := &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.done) })
	return l
}

// dial connects when the connection is accepted.
func (l *memoryListener) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept returns the next connection.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close makes Accept and dial return net.ErrClosed.
func (l *memoryListener) Close() error {
	l.close()
	return nil
}

// Addr returns the address for dialling.
func (l *memoryListener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return memoryAddress }
