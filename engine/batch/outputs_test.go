package batch_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
)

func named(name string) *batch.Series {
	return batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: name}})
}

func rowsOf(src uint64, ss ...*batch.Series) *batch.Metrics {
	return &batch.Metrics{Source: src, Series: ss, T: make([]int64, len(ss)), V: make([]float64, len(ss))}
}

// markersOf returns the names of the series that have a marker in b, and checks
// their time.
func markersOf(b *batch.Metrics, t int64) (names []string) {
	for i, v := range b.V {
		if batch.IsStale(v) && b.T[i] == t {
			names = append(names, b.Series[i].Name())
		}
	}
	slices.Sort(names)
	return names
}

func wantMarkers(t *testing.T, got *batch.Metrics, at int64, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, markersOf(got, at)); diff != "" {
		t.Errorf("markers (-want +got):\n%s", diff)
	}
}

func TestOutputs(t *testing.T) {
	a, b, b2, c := named("a"), named("b"), named("b"), named("c")
	o := batch.NewOutputs()
	first := rowsOf(1, a, b)
	if got := o.Settle(1, first, 10); got != first {
		t.Error("a source's first batch was changed")
	}
	o.Sent(1, first)

	// With the same version, a missing series needs no marker.
	wantMarkers(t, o.Settle(1, rowsOf(1, a), 20), 20)

	// With another version, b has a new handle, which counts as the same series.
	next := rowsOf(1, b2, c)
	next.V[0] = 7
	settled := o.Settle(2, next, 20)
	wantMarkers(t, settled, 20, "a")
	if len(next.Series) != 2 || len(next.V) != 2 || settled.V[0] != 7 {
		t.Error("Settle wrote to its argument")
	}
	// Settle changes nothing, so it can be called again for a refused batch.
	wantMarkers(t, o.Settle(2, rowsOf(1, c), 30), 30, "a", "b")
	// Other sources are not affected.
	wantMarkers(t, o.Settle(2, rowsOf(2, c), 30), 30)

	o.Sent(2, settled)
	wantMarkers(t, o.Settle(2, rowsOf(1, c), 40), 40)
	// A series that already got its marker needs no other marker.
	wantMarkers(t, o.Settle(3, rowsOf(1), 50), 50, "b", "c")
}

// TestOutputsRandom compares the markers of columns with duplicates and in any order with
// the names that are in the first column only.
func TestOutputsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		columns := [2][]*batch.Series{}
		names := [2]map[string]bool{{}, {}}
		for c := range columns {
			for range r.IntN(6) {
				name := string(rune('a' + r.IntN(5)))
				if i := len(columns[c]); c == 1 && i < len(columns[0]) && r.IntN(2) == 0 {
					name = columns[0][i].Name()
				}
				columns[c], names[c][name] = append(columns[c], named(name)), true
			}
		}
		o := batch.NewOutputs()
		o.Sent(1, rowsOf(1, columns[0]...))
		var want []string
		for _, name := range slices.Sorted(maps.Keys(names[0])) {
			if !names[1][name] {
				want = append(want, name)
			}
		}
		wantMarkers(t, o.Settle(2, rowsOf(1, columns[1]...), 20), 20, want...)
	}
}

func TestOutputsOldGenerationInFlight(t *testing.T) {
	a, b := named("a"), named("b")
	o := batch.NewOutputs()
	o.Sent(1, rowsOf(1, a))
	// The rules change to version 2 while a batch of version 1 is in flight. The
	// batch is settled and accepted after the change, and its markers are still
	// pending.
	late := o.Settle(1, rowsOf(1, a), 10)
	wantMarkers(t, late, 10)
	o.Sent(1, late)
	wantMarkers(t, o.Settle(2, rowsOf(1, b), 20), 20, "a")
}

func TestOutputsSentInPart(t *testing.T) {
	a, b, c := named("a"), named("b"), named("c")
	o := batch.NewOutputs()
	o.Sent(1, rowsOf(1, a))
	o.SentInPart(2, o.Settle(2, rowsOf(1, b), 10))
	// The receiver that refused needs the marker of a. After another change, the
	// receiver that accepted needs a marker of b.
	wantMarkers(t, o.Settle(2, rowsOf(1, b), 20), 20, "a")
	settled := o.Settle(3, rowsOf(1, c), 20)
	wantMarkers(t, settled, 20, "a", "b")
	o.Sent(3, settled)
	wantMarkers(t, o.Settle(3, rowsOf(1, c), 30), 30)

	// If a series comes back while its marker is pending, the marker is discarded.
	o.SentInPart(4, o.Settle(4, rowsOf(1, a), 40))
	o.SentInPart(4, o.Settle(4, rowsOf(1, a, c), 50))
	wantMarkers(t, o.Settle(4, rowsOf(1, a, c), 60), 60)
}

func TestOutputsSweep(t *testing.T) {
	a, b := named("a"), named("b")
	derived := a.Derive([]batch.Label{{Name: batch.NameLabel, Value: "d"}})
	o := batch.NewOutputs()
	o.Sent(1, rowsOf(1, derived))
	o.Sent(1, rowsOf(2, b))
	derived.Release() // by its node, whose rules changed; the source continues
	o.Sweep()
	wantMarkers(t, o.Settle(2, rowsOf(1), 10), 10, "d")
	a.Release()
	o.Sweep()
	wantMarkers(t, o.Settle(2, rowsOf(1), 10), 10)
	wantMarkers(t, o.Settle(2, rowsOf(2), 10), 10, "b")
}

func TestMemoEvicted(t *testing.T) {
	var m batch.Memo[string]
	var evicted []string
	m.Evicted = func(s *batch.Series, v string) { evicted = append(evicted, s.Name()+"="+v) }
	a := named("a")
	m.Put(a, "1")
	m.Put(a, "2") // not stored: the first writer wins
	a.Release()
	b := named("b")
	if a.ID() != b.ID() {
		t.Fatalf("b has ID %d, want that of a, %d", b.ID(), a.ID())
	}
	m.Put(b, "3")
	if diff := cmp.Diff([]string{"a=1"}, evicted); diff != "" {
		t.Errorf("evicted (-want +got):\n%s", diff)
	}
	if v, ok := m.Get(b); !ok || v != "3" {
		t.Errorf("got %q, %v, want 3", v, ok)
	}
}

// TestOutputsPushed: a batch pushed to weir may contain any subset of the
// series, so a missing series has not ended.
func TestOutputsPushed(t *testing.T) {
	a, b := named("a"), named("b")
	src := batch.NewPushSource()
	if src == batch.NewPushSource() {
		t.Error("two Sources are the same")
	}
	o := batch.NewOutputs()
	o.Sent(1, rowsOf(src, a))
	o.SentInPart(1, rowsOf(src, a))
	wantMarkers(t, o.Settle(2, rowsOf(src, b), 20), 20)
	wantMarkers(t, o.Ends(batch.Origin{Source: src}, 20), 20)
	if o.Has(batch.Origin{Source: src}) {
		t.Error("the Source's series are kept for nothing")
	}
}
