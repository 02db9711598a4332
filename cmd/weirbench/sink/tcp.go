package sink

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
)

// Lines receives plain lines over TCP, as rsyslog sends them, and records them in
// the ledger of a Server.
type Lines struct {
	s        *Server
	listener net.Listener
}

// ListenLines opens a free port on loopback.
func (s *Server) ListenLines() (*Lines, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for lines: %w", err)
	}
	return &Lines{s: s, listener: l}, nil
}

// Address returns the address on which it listens.
func (l *Lines) Address() string { return l.listener.Addr().String() }

// Serve receives lines until ctx ends.
func (l *Lines) Serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() { l.listener.Close() })
	defer stop()
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		wg.Go(func() {
			defer context.AfterFunc(ctx, func() { c.Close() })()
			defer c.Close()
			l.read(c)
		})
	}
}

// read records the lines of a connection.
func (l *Lines) read(c net.Conn) {
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 256<<10), maxRequest)
	for in.Scan() {
		l.s.mu.Lock()
		l.s.ledger.stats.Bytes += int64(len(in.Bytes())) + 1
		l.s.ledger.line(in.Bytes())
		l.s.mu.Unlock()
	}
}
