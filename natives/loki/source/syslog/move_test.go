package syslog_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/loki/source/syslog"
)

// with updates the component to listeners on some addresses.
func (s *source) with(addresses ...string) {
	s.t.Helper()
	a := *s.args
	a.Listeners = nil
	for _, address := range addresses {
		a.Listeners = append(a.Listeners, listener(func(l *syslog.Listener) { l.Protocol, l.Address = s.args.Listeners[0].Protocol, address }))
	}
	if err := s.c.(component.Updater).Update(&a); err != nil {
		s.t.Fatal(err)
	}
}

// wantClosed waits until the component closes a connection.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection should end, got %v", err)
	}
}

// refused reports whether nobody listens on an address.
func refused(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		conn.Close()
	}
	return err != nil
}

// TestMoves: a listener whose address changes goes on, with its connections, until the
// new address is open.
func TestMoves(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	old := s.address()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s.with(taken.Addr().String())
	s.Wait(t, func() bool { return s.Health().State == component.Unhealthy })
	if h := s.Health(); !strings.Contains(h.Message, "in use") || !strings.Contains(h.Message, "until then "+old+" is served") {
		t.Errorf("health is %q", h.Message)
	}
	send(t, conn, "<13>1 - h - - - - one\n")
	s.want(`{} one`)
	if refused(old) {
		t.Error("the old address is closed")
	}

	// The next address takes the place of the one that still listens.
	s.with("127.0.0.1:0")
	s.Wait(t, func() bool { return s.Health().State == component.Healthy })
	send(t, s.dial(), "<13>1 - h - - - - two\n")
	s.want(`{} one`, `{} two`)
	wantClosed(t, conn)
	if !refused(old) {
		t.Error("the old address is still open")
	}
}

// TestAnotherHost: an address with the same port and another host takes the place of the
// old one, and if it cannot be opened, the old one is served again, with its connections.
func TestAnotherHost(t *testing.T) {
	f := func(protocol string, occupy func(address string) (io.Closer, error)) {
		t.Run(protocol, func(t *testing.T) {
			s := start(t, func(l *syslog.Listener) { l.Protocol = protocol })
			conn := s.dial()
			send(t, conn, "<13>1 - h - - - - zero\n") // it is accepted
			s.want(`{} zero`)
			old := s.address()
			_, port, err := net.SplitHostPort(old)
			if err != nil {
				t.Fatal(err)
			}
			other, err := occupy(net.JoinHostPort("127.0.0.2", port))
			if err != nil {
				t.Skip("the host has one loopback address: ", err)
			}
			defer other.Close()
			all := net.JoinHostPort("0.0.0.0", port)
			s.with(all)
			served := func() bool {
				h := s.Health()
				return h.State == component.Unhealthy && strings.Contains(h.Message, "in use") && strings.Contains(h.Message, "until then "+old+" is served")
			}
			s.Wait(t, served)
			s.Clock.Advance(time.Millisecond) // so that the lines have other times
			send(t, conn, "<13>1 - h - - - - one\n")
			s.want(`{} zero`, `{} one`)
			again, err := net.Dial(protocol, old)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			send(t, again, "<13>1 - h - - - - two\n")
			s.want(`{} zero`, `{} one`, `{} two`)

			// The next try finds the address free.
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			opened := make(chan struct{})
			go s.advance(time.Second, opened)
			s.Wait(t, func() bool { return s.Health().State == component.Healthy })
			close(opened)
			if got := s.address(); got != "[::]:"+port && got != all {
				t.Errorf("it listens on %s", got)
			}
			last, err := net.Dial(protocol, old)
			if err != nil {
				t.Fatal(err)
			}
			defer last.Close()
			send(t, last, "<13>1 - h - - - - three\n")
			s.want(`{} zero`, `{} one`, `{} two`, `{} three`)
		})
	}
	f("tcp", func(address string) (io.Closer, error) { return net.Listen("tcp", address) })
	f("udp", func(address string) (io.Closer, error) { return net.ListenPacket("udp", address) })
}

// TestRemovedListener: a listener that no other one takes the place of ends at once.
func TestRemovedListener(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	send(t, conn, "<13>1 - h - - - - one\n") // it is accepted
	s.want(`{} one`)
	old := s.address()
	s.with()
	wantClosed(t, conn)
	if !refused(old) {
		t.Error("the old address is still open")
	}
}

// TestHundredReloads: no connection is refused and no message lost while arguments other
// than the address change a hundred times.
func TestHundredReloads(t *testing.T) {
	s := start(t, nil)
	kept, address := s.dial(), s.address()
	const senders = 2
	sent := make(chan struct{}, senders)
	var wg sync.WaitGroup
	defer wg.Wait()
	ending, end := context.WithCancel(t.Context())
	defer end()
	counts := make(chan int, senders)
	for i := range senders {
		wg.Go(func() {
			n := 0
			defer func() { counts <- n }()
			for {
				conn := kept
				if i > 0 {
					var err error
					if conn, err = net.Dial("tcp", address); err != nil {
						t.Errorf("a connection was refused: %v", err)
						return
					}
				}
				if _, err := fmt.Fprintf(conn, "<13>1 - h - - - - %d-%d\n", i, n); err != nil {
					t.Errorf("cannot send: %v", err)
				}
				if i > 0 {
					conn.Close()
				}
				n++
				select {
				case sent <- struct{}{}:
				case <-ending.Done():
					return
				}
			}
		})
	}
	for i := range 100 {
		<-sent
		a := *s.args
		a.RelabelRules = mapped([]string{"message_hostname", "message_severity"}[i%2])
		a.Listeners = []*syslog.Listener{listener(func(l *syslog.Listener) { l.MaxConnections = 1000 + i })}
		if err := s.c.(component.Updater).Update(&a); err != nil {
			t.Fatal(err)
		}
	}
	end()
	total := 0
	for range senders {
		total += <-counts
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.sink.WaitLines(ctx, total); err != nil {
		t.Errorf("waited for %d lines: %v; dropped %v", total, err, s.Stats.DroppedLines())
	}
}
