package syslog_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	lokisource "github.com/weir-run/weir/natives/loki/source/internal/source"
	"github.com/weir-run/weir/natives/loki/source/syslog"
)

// metric returns the value of a metric without labels.
func (s *source) metric(name string) float64 {
	s.t.Helper()
	fams, err := s.Registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range fams {
		if f.GetName() == name {
			return f.Metric[0].GetCounter().GetValue() + f.Metric[0].GetGauge().GetValue()
		}
	}
	s.t.Fatalf("there is no metric %s", name)
	return 0
}

// connected waits until there are n connections.
func (s *source) connected(n float64) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for s.metric("weir_source_syslog_connections") != n {
		select {
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("there are %v connections, want %v", s.metric("weir_source_syslog_connections"), n)
		}
	}
}

func TestMaxConnections(t *testing.T) {
	s := start(t, func(l *syslog.Listener) { l.MaxConnections = 2 })
	first, second := s.dial(), s.dial()
	s.connected(2)
	for range 3 {
		if _, err := s.dial().Read(make([]byte, 1)); err != io.EOF && (err == nil || !strings.Contains(err.Error(), "reset")) {
			t.Errorf("a third connection was not closed: %v", err)
		}
	}
	if got := s.metric("weir_source_syslog_refused_connections_total"); got != 3 {
		t.Errorf("got %v refused connections, want 3", got)
	}
	if n := strings.Count(s.Logs(), "connections are refused"); n != 1 {
		t.Errorf("it was logged %d times, want once:\n%s", n, s.Logs())
	}
	// Open connections continue, and when one ends, another one is accepted.
	first.Close()
	s.connected(1)
	third := s.dial()
	send(t, second, "<165>1 2003-10-11T22:14:15Z h a - - - second\n")
	s.want("{} second")
	send(t, third, "<165>1 2003-10-11T22:14:15Z h a - - - third\n")
	s.want("{} second", "{} third")
}

// TestForgottenStreams: a sender may use another label in each message.
func TestForgottenStreams(t *testing.T) {
	s := build(t, nil, "message_hostname")
	lines := syslog.NewLines(s.c, s.args.RelabelRules)
	at := time.Unix(1000, 0)
	for i := range lokisource.MaxStreams + 1 {
		lines.Add(fmt.Appendf(nil, "<165>1 2003-10-11T22:14:15Z h%d a - - - x\n", i), at)
	}
	if got := s.metric("weir_source_syslog_forgotten_streams_total"); got != lokisource.MaxStreams {
		t.Errorf("got %v forgotten sets of labels, want %d", got, lokisource.MaxStreams)
	}
}

// TestLongLabelsOfConnection: a connection caches streams by properties of its
// messages, which may be long.
func TestLongLabelsOfConnection(t *testing.T) {
	s := build(t, nil, "message_hostname", "message_app_name", "message_msg_id")
	lines := syslog.NewLines(s.c, s.args.RelabelRules)
	at := time.Unix(1000, 0)
	for i := range 10_000 {
		lines.Add(fmt.Appendf(nil, "<165>1 2003-10-11T22:14:15Z %s%d a - - - x\n", strings.Repeat("h", 200), i), at)
		if got := lines.Remembered(); got > 256<<10 {
			t.Fatalf("%d bytes of labels are remembered after %d messages", got, i)
		}
	}
}
