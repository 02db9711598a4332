package syslog_test

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/natives/loki/source/syslog"
)

// stopped is a socket whose reading is ended while the kernel still has
// datagrams.
type stopped struct {
	reads    []error // nil stands for a datagram; there is none at the end
	deadline time.Time
	extended int
}

func (s *stopped) SetReadDeadline(t time.Time) error {
	s.deadline = t
	s.extended++
	return nil
}

func (s *stopped) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	err := os.ErrDeadlineExceeded
	if len(s.reads) > 0 {
		err, s.reads = s.reads[0], s.reads[1:]
	}
	return copy(b, "<13>1 - - - - - - a"), netip.AddrPort{}, err
}

// TestUDPDrain: when a listener stops, datagrams in the kernel are read until
// there are no more or the socket fails.
func TestUDPDrain(t *testing.T) {
	f := func(want int, reads ...error) {
		t.Helper()
		conn := &stopped{reads: reads}
		s := build(t, func(l *syslog.Listener) { l.Protocol = "udp" })
		if got := syslog.ReadUDP(s.c, conn); got != want {
			t.Errorf("%v: %d datagrams were read, want %d", reads, got, want)
		}
		if conn.extended != want { // for each datagram, and for the one that does not arrive; the first arrived before
			t.Errorf("%v: the deadline was set %d times, want %d", reads, conn.extended, want)
		}
		if left := time.Until(conn.deadline); left > time.Second {
			t.Errorf("the last read may last %s", left)
		}
	}
	end := os.ErrDeadlineExceeded
	f(1, nil, end)
	f(4, nil, end, nil, nil, nil)
	f(2, nil, end, nil, errors.New("broken"), nil)
}

// TestUDPEndless: senders that continue do not delay the stop.
func TestUDPEndless(t *testing.T) {
	s := build(t, func(l *syslog.Listener) { l.Protocol, l.UDPQueueSize = "udp", 1 })
	if got := syslog.ReadUDP(s.c, endless{new(stopped)}); got == 0 {
		t.Error("nothing was read")
	}
}

// endless is a socket that always has a datagram, except for the read that ends.
type endless struct{ *stopped }

func (e endless) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	if e.extended == 0 {
		return 0, netip.AddrPort{}, os.ErrDeadlineExceeded
	}
	return copy(b, "<13>1 - - - - - - a"), netip.AddrPort{}, nil
}

// TestUDPStopInAnOutage: datagrams that the receivers did not accept, in flight
// or in the queue, are counted.
func TestUDPStopInAnOutage(t *testing.T) {
	s := start(t, func(l *syslog.Listener) { l.Protocol = "udp" })
	open := s.gate.shut()
	defer open()
	conn := s.dial()
	send(t, conn, "<13>1 - - - - - - the first")
	<-s.gate.called
	const n, size = 10, 9000 // two blocks
	for i := range n {       // one by one, because the kernel may have no space for them
		send(t, conn, "<13>1 - - - - - - "+strings.Repeat("a", size))
		s.received(float64(i+1) * size)
	}
	done := make(chan struct{})
	go func() { s.stop(); close(done) }()
	s.advance(100*time.Millisecond, done)
	s.dropped("stopped", n+1)
}

// received waits until the given number of bytes were read.
func (s *source) received(n float64) {
	s.t.Helper()
	for got := -1.0; got < n; runtime.Gosched() {
		fs, err := s.Registry.Gather()
		if err != nil {
			s.t.Fatal(err)
		}
		for _, f := range fs {
			if f.GetName() == "weir_source_syslog_received_bytes_total" {
				got = f.Metric[0].GetCounter().GetValue()
			}
		}
	}
}
