package ruleset_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/ruleset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a node whose rules are strings, and what is done to them.
type harness struct {
	t      *testing.T
	clock  *clocktest.Fake
	node   *ruleset.Node[*rules]
	events chan string
}

func newHarness(t *testing.T) *harness {
	l := &harness{t: t, clock: clocktest.New(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)), events: make(chan string, 100)}
	l.node = ruleset.NewNode[*rules](sends{l})
	return l
}

// want waits for what is done next.
func (l *harness) want(want ...string) {
	l.t.Helper()
	for _, w := range want {
		select {
		case got := <-l.events:
			if got != w {
				l.t.Errorf("got %q, want %q", got, w)
			}
		case <-time.After(time.Minute):
			l.t.Fatalf("nothing is done, want %q", w)
		}
	}
	if len(l.events) > 0 {
		l.t.Errorf("more is done: %q", <-l.events)
	}
}

// advance lets d pass once so many timers are armed.
func (l *harness) advance(d time.Duration, timers int) {
	l.t.Helper()
	l.asleep(timers)
	l.clock.Advance(d)
}

func (l *harness) asleep(timers int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	if err := l.clock.WaitTimers(ctx, timers); err != nil {
		l.t.Fatal(err)
	}
}

type rules struct {
	l    *harness
	name string
}

func (r *rules) Sweep() { r.l.events <- "sweep " + r.name }
func (r *rules) Close() { r.l.events <- "close " + r.name }

type sends struct{ l *harness }

func (s sends) EndLeaving(context.Context) { s.l.events <- "end leaving" }
func (s sends) Sweep()                     { s.l.events <- "sweep sends" }

func (l *harness) next(name string) *ruleset.Version[*rules] {
	return l.node.Next(func(r *rules) bool { return r.name == name }, func() *rules { return &rules{l, name} })
}

// run runs the node until the function that it returns is called.
func (l *harness) run(redirected <-chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error)
	go func() { done <- l.node.Run(ctx, l.clock, redirected) }()
	return func() {
		l.t.Helper()
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	}
}

func TestNext(t *testing.T) {
	l := newHarness(t)
	a := l.next("a")
	if again := l.next("a"); again != a {
		t.Error("equal rules made a new version")
	}
	b := l.next("b")
	back := l.next("a")
	if a.Number == b.Number || back.Number == a.Number || back.Number == b.Number {
		t.Errorf("got numbers %d, %d, %d", a.Number, b.Number, back.Number)
	}
	if back.Rules == a.Rules {
		t.Error("rules that were replaced came back")
	}
	l.want()
}

// TestSweep: rules that were replaced are kept from one sweep to the next but
// one.
func TestSweep(t *testing.T) {
	l := newHarness(t)
	l.next("a")
	stop := l.run(nil)
	l.advance(flow.EndAfter, 2)
	l.want("end leaving")
	l.advance(time.Minute, 1)
	l.want("sweep a", "sweep sends")
	l.next("b")
	l.want()
	l.advance(time.Minute, 1)
	l.want("sweep a", "sweep b", "sweep sends")
	l.next("c")
	l.advance(time.Minute, 1)
	l.want("close a", "sweep b", "sweep c", "sweep sends")
	l.advance(time.Minute, 1)
	l.want("close b", "sweep c", "sweep sends")
	stop()
	l.want("close c")
}

// TestRunsOverlap: of two components of a node the last one gives back.
func TestRunsOverlap(t *testing.T) {
	l := newHarness(t)
	l.next("a")
	first := l.run(nil)
	l.asleep(2)
	l.next("b")
	second := l.run(nil)
	l.asleep(4)
	first()
	l.want()
	second()
	l.want("close a", "close b")
}

func TestRedirected(t *testing.T) {
	l := newHarness(t)
	l.next("a")
	redirected := make(chan struct{})
	stop := l.run(redirected)
	l.advance(flow.EndAfter, 2)
	l.want("end leaving")
	redirected <- struct{}{}
	l.asleep(2)
	l.clock.Advance(flow.EndAfter - 1)
	l.want()
	l.clock.Advance(1)
	l.want("end leaving")
	stop()
	l.want("close a")
}

func named(name string) *batch.Series {
	return batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: name}})
}

func rows(ss ...*batch.Series) *batch.Metrics {
	b := &batch.Metrics{Source: 1, Series: ss}
	for i := range ss {
		b.T, b.V = append(b.T, 0), append(b.V, float64(i))
	}
	return b
}

// upper keeps upper case, drops names that begin with x, and derives all other
// series.
func upper(s *batch.Series) *batch.Series {
	n := s.Name()
	switch {
	case n[0] == 'x':
		return nil
	case strings.ToUpper(n) == n:
		return s
	}
	return s.Derive([]batch.Label{{Name: batch.NameLabel, Value: strings.ToUpper(n)}})
}

func TestMapper(t *testing.T) {
	calls := 0
	m := ruleset.NewMapper(func(s *batch.Series) *batch.Series { calls++; return upper(s) })
	a, b, x, y := named("A"), named("b"), named("x"), named("Y")
	f := func(in *batch.Metrics, dropped int, want string) *batch.Metrics {
		t.Helper()
		out, n := m.Apply(in)
		if got := strings.TrimSpace(string(batch.AppendTextAt(nil, out, 0))); got != want || n != dropped {
			t.Errorf("got %d dropped and\n%s\nwant %d and\n%s", n, got, dropped, want)
		}
		return out
	}
	same := rows(a, y)
	if out := f(same, 0, "A 0\nY 1"); out != same {
		t.Error("a batch that does not change was copied")
	}
	in := rows(a, b, y)
	out := f(in, 0, "A 0\nB 1\nY 2")
	if &out.V[0] != &in.V[0] || &out.T[0] != &in.T[0] {
		t.Error("columns that do not change are not shared")
	}
	if f(in, 0, "A 0\nB 1\nY 2").Series[1] != out.Series[1] {
		t.Error("another handle in the next batch")
	}
	f(rows(x, b, x, a), 2, "B 1\nA 3")
	f(rows(x), 1, "")
	if b.Name() != "b" || calls != 4 {
		t.Errorf("%d series were derived", calls)
	}

	// Handles derived from a released series are released by a sweep, or when
	// another series gets its ID.
	b.Release()
	m.Sweep()
	if !out.Series[1].Released() || a.Released() {
		t.Error("not given back, or too much")
	}
	c := named("c")
	d := m.Series(c)
	c.Release()
	e := named("e")
	for e.ID() != c.ID() {
		e = named("e")
	}
	m.Series(e)
	if !d.Released() {
		t.Error("not given back to the next of its ID")
	}
	E := m.Series(e)
	m.Close()
	if !E.Released() || e.Released() {
		t.Error("Close does not give back, or too much")
	}
	if again := m.Series(e); again == E || again.Released() {
		t.Error("what was given back is still in use")
	}
}

// TestMapperSideBySide: all who ask at once get the same handle, and what the
// others derived is given back.
func TestMapperSideBySide(t *testing.T) {
	var mu sync.Mutex
	var made []*batch.Series
	m := ruleset.NewMapper(func(s *batch.Series) *batch.Series {
		d := upper(s)
		mu.Lock()
		defer mu.Unlock()
		made = append(made, d)
		return d
	})
	for range 50 {
		s := named("a")
		made = nil
		got := make([]*batch.Series, 4)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = m.Series(s) })
		}
		wg.Wait()
		for _, g := range got {
			if g != got[0] || g.Released() {
				t.Fatal("not one handle for all")
			}
		}
		if n := len(slices.DeleteFunc(made, func(d *batch.Series) bool { return d.Released() })); n != 1 {
			t.Fatalf("%d handles are alive", n)
		}
	}
}
