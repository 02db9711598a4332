package view_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
)

// routeLab routes one batch after another.
type routeLab struct {
	t    *testing.T
	gen  *view.Cache
	a, b *batch.Series
	at   int64
}

func newRouteLab(t *testing.T) *routeLab {
	return &routeLab{t: t, gen: view.NewCache(view.Options{Outputs: 2}), a: series("a"), b: series("b")}
}

// batch contains a with value 1 and b with value 2, or staleness markers for
// both if stale is true.
func (l *routeLab) batch(stale bool) *view.Metrics {
	in := metrics(l.a, l.b)
	l.at++
	for i := range in.T {
		in.T[i] = l.at
		if stale {
			in.V[i] = batch.Stale()
		}
	}
	return over(in, l.gen)
}

func (l *routeLab) want(m *view.Metrics, main, first, second string) view.Result[*batch.Metrics] {
	l.t.Helper()
	res := m.Apply()
	for way, want := range []string{main, first, second} {
		got := m.Part(1 << way)
		if way == 0 {
			if diff := cmp.Diff(form(got), form(res.Batch)); diff != "" {
				l.t.Errorf("Part(1) is not the result (-part +result):\n%s", diff)
			}
		}
		if diff := cmp.Diff(want, form(got)); diff != "" {
			l.t.Errorf("way %d (-want +got):\n%s", way, diff)
		}
	}
	return res
}

func form(b *batch.Metrics) string {
	return strings.ReplaceAll(strings.TrimSpace(string(batch.AppendTextAt(nil, b, at(b)))), "\n", ", ")
}

func TestRoute(t *testing.T) {
	l := newRouteLab(t)
	m := l.batch(false)
	m.Route(0, 1)
	if m.Alive(0) || m.Left() != 1 {
		t.Error("a routed record is still in the batch")
	}
	if err := m.SetLabel(0, "why", "x"); err != nil { // labels are taken when the hook returns
		t.Fatal(err)
	}
	res := l.want(m, "b 2", `a{why="x"} 1`, "")
	if res.Dropped != 0 || res.Routed != 1 || m.RoutedTo(1) != 1 || m.RoutedTo(2) != 0 {
		t.Errorf("got %d dropped, %d routed, %d to 1, %d to 2; want one to 1", res.Dropped, res.Routed, m.RoutedTo(1), m.RoutedTo(2))
	}
	// The last call wins.
	m = l.batch(false)
	m.Route(0, 1)
	m.Route(0, 2)
	m.Route(1, 1)
	m.Drop(1)
	if res := l.want(m, "", "", "a 1"); res.Dropped != 1 || res.Routed != 1 {
		t.Errorf("got %+v, want one dropped, one routed", res)
	}
	m = l.batch(false)
	m.Drop(0)
	m.Route(0, 1)
	m.Route(1, 1)
	m.Route(1, 0)
	l.want(m, "b 2", "a 1", "")

	// Emitted records, and two ways in one batch.
	m = l.batch(false)
	m.Route(1, 2)
	if err := m.EmitTo(1, view.Record{Name: "e", Value: 9, Time: l.at}); err != nil {
		t.Fatal(err)
	}
	l.want(m, "a 1", "e 9", "b 2")
	if got := form(m.Part(0b101)); got != "a 1, b 2" {
		t.Errorf("got %q on ways 0 and 2", got)
	}
	if got := m.Batch(); form(got) != "a 1, b 2" {
		t.Errorf("the batch that came is now %s", form(got))
	}
}

func TestRouteRollback(t *testing.T) {
	l := newRouteLab(t)
	m := l.batch(false)
	m.Route(1, 2)
	m.Mark(0)
	m.Route(0, 1)
	if err := m.EmitTo(1, view.Record{Name: "e"}); err != nil {
		t.Fatal(err)
	}
	m.Rollback()
	m.Mark(1)
	m.Route(1, 1)
	m.Rollback()
	res := l.want(m, "a 1", "", "b 2")
	if res.Routed != 1 || res.Dropped != 0 || m.Left() != 1 {
		t.Errorf("got %+v, %d left", res, m.Left())
	}
}

// A staleness marker ends its series on every way by which records of it left,
// with the labels that it had there.
func TestRouteMarkers(t *testing.T) {
	l := newRouteLab(t)
	m := l.batch(false)
	m.Route(0, 1)
	if err := m.SetLabel(0, "why", "x"); err != nil {
		t.Fatal(err)
	}
	l.want(m, "b 2", `a{why="x"} 1`, "")
	m = l.batch(false)
	m.Route(0, 2)
	l.want(m, "b 2", "", "a 1")
	// Markers have no value, so the script does not route them.
	l.want(l.batch(true), "a stale, b stale", `a{why="x"} stale`, "a stale")
	// Markers are sent only once.
	l.want(l.batch(true), "a stale, b stale", "", "")
	// A marker that is also routed, and a marker that is dropped.
	m = l.batch(false)
	m.Route(0, 1)
	l.want(m, "b 2", "a 1", "")
	m = l.batch(true)
	m.Route(0, 1)
	m.Drop(1)
	l.want(m, "b stale", "a stale", "")
}

// at returns the time of a batch. All its rows have the same time.
func at(b *batch.Metrics) int64 {
	if b.Len() == 0 {
		return 0
	}
	return b.T[0]
}
