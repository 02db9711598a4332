package syslog_test

import (
	"cmp"
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/loki/source/syslog"
)

// source is a running component.
type source struct {
	*componenttest.Node
	t    testing.TB
	c    component.Component
	sink *flowtest.Sink
	gate *gate
	args *syslog.Arguments
	stop func()
}

// gate is in front of the sink. While it is closed, calls wait.
type gate struct {
	to     *flowtest.Sink
	called chan struct{} // capacity 1

	mu   sync.Mutex
	open chan struct{}
}

// ConsumeLogs passes b to the sink when the gate is open.
func (g *gate) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	select {
	case g.called <- struct{}{}:
	default:
	}
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return g.to.ConsumeLogs(ctx, b)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shut closes the gate until open is called. Nothing may be in flight.
func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	g.open = shut
	return func() { close(shut) }
}

// advance advances the clock in steps until done is closed.
func (s *source) advance(step time.Duration, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
			s.Clock.Advance(step)
			runtime.Gosched()
		}
	}
}

// listener returns a listener on a free port.
func listener(edit func(*syslog.Listener)) *syslog.Listener {
	l := new(syslog.Listener)
	l.SetToDefault()
	l.Address = "127.0.0.1:0"
	if edit != nil {
		edit(l)
	}
	return l
}

// build builds a component with one listener that does not run yet.
func build(t testing.TB, edit func(*syslog.Listener), rules ...string) *source {
	t.Helper()
	s := &source{Node: componenttest.New(t, "loki.source.syslog.default"), t: t, sink: flowtest.NewSink("sink")}
	s.gate = &gate{to: s.sink, open: make(chan struct{}), called: make(chan struct{}, 1)}
	close(s.gate.open)
	r := flow.NewReceiver("gate", batch.SignalLogs, nil, nil)
	r.Set(s.gate)
	s.args = &syslog.Arguments{ForwardTo: []*flow.Receiver{r}, RelabelRules: mapped(rules...), Listeners: []*syslog.Listener{listener(edit)}}
	l := s.args.Listeners[0]
	if err := cmp.Or(s.args.Validate(), l.Validate()); err != nil {
		t.Fatal(err)
	}
	s.c = s.Build(t, syslog.Registration(), s.args)
	syslog.Resolve(s.c, func(addr string) string { return "host-of-" + addr })
	return s
}

// start runs a component with one listener.
func start(t testing.TB, edit func(*syslog.Listener), rules ...string) *source {
	t.Helper()
	s := build(t, edit, rules...)
	s.run()
	return s
}

func (s *source) run() {
	s.t.Helper()
	s.stop = s.Run(s.t, s.c)
	s.Wait(s.t, func() bool { return s.Health().State == component.Healthy })
}

// mapped returns rules that create a label from each named label that begins with
// "__syslog_", without this prefix and without "message_".
func mapped(names ...string) (rules rule.Rules) {
	for _, n := range names {
		r := new(rule.Rule)
		r.SetToDefault()
		r.SourceLabels, r.TargetLabel = []string{"__syslog_" + n}, strings.TrimPrefix(n, "message_")
		rules = append(rules, r)
	}
	return rules
}

func (s *source) address() string {
	s.t.Helper()
	return s.c.(component.Debugger).DebugInfo().(syslog.Info).Listeners[0].Address
}

func (s *source) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial(s.args.Listeners[0].Protocol, s.address())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// want waits for the lines and compares them as "labels line".
func (s *source) want(lines ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bs, err := s.sink.WaitLines(ctx, len(lines))
	if err != nil {
		s.t.Errorf("waited for %d lines: %v; dropped %v\n%s", len(lines), err, s.Stats.DroppedLines(), s.Logs())
	}
	var got []string
	last := map[uint64]int64{}
	for _, b := range bs {
		for i, l := range b.Line {
			got = append(got, b.Stream[i].String()+" "+l)
			if b.T[i] <= last[b.Source] && !s.args.Listeners[0].UseIncomingTimestamp {
				s.t.Errorf("line %q has time %d, not after that of the line before, %d", l, b.T[i], last[b.Source])
			}
			last[b.Source] = b.T[i]
		}
	}
	if d := gocmp.Diff(lines, got); d != "" {
		s.t.Errorf("lines (-want +got):\n%s", d)
	}
}

// dropped waits until the given number of lines were dropped for a reason. They
// are counted when a read ends, so it first sends another message and waits for
// it.
func (s *source) dropped(reason string, n uint64) {
	s.t.Helper()
	if got := s.Stats.DroppedLines()[reason]; got != n {
		s.t.Errorf("%d lines were dropped for %q, want %d: %v", got, reason, n, s.Stats.DroppedLines())
	}
}
