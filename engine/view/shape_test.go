package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
)

// TestMapLabelEdits: if the callback of map_label edits the batch, it sees the
// batch half mapped, whatever is cached for the column.
func TestMapLabelEdits(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("a", "job", "p"), series("b", "job", "q"))
	var m view.Metrics
	label := func() {
		t.Helper()
		if err := m.SetLabelAll("x", "1"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		m.Reset(b, g, start)
		label()
		m.Apply()
	}
	for round := range 3 {
		m.Reset(b, g, start)
		err := m.MapLabel(nil, "job", func(v string) (string, bool, error) {
			if v == "q" {
				label()
			}
			return v + "!", false, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`a{job="p!",x="1"} 1`, `b{job="q!",x="1"} 2`}
		if diff := cmp.Diff(want, text(m.Apply().Batch)); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// TestLateColumn: handles that expire are not cached by column. A late batch
// gets a live handle.
func TestLateColumn(t *testing.T) {
	g := newCache()
	defer g.Close()
	s := series("late", "job", "a")
	b := metrics(s)
	s.Release()
	var m view.Metrics
	for round := range 6 {
		now := start.Add(time.Duration(round) * 20 * time.Minute)
		m.Reset(metrics(), g, now) // the look-up of other handles releases expired ones
		if err := m.Emit(view.Record{Name: "other"}); err != nil {
			t.Fatal(err)
		}
		m.Reset(b, g, now)
		if err := m.RunSeries(func(_ int, s *view.Series) error { return s.SetLabel("a", "1") }); err != nil {
			t.Fatal(err)
		}
		if err := m.SetLabelAll("b", "1"); err != nil {
			t.Fatal(err)
		}
		for d := m.Apply().Batch.Series[0]; d != nil && d != s; d = d.Source() {
			if d.Released() {
				t.Errorf("round %d: %s is released", round, d)
			}
		}
		if _, ok := g.Remembered(b); ok {
			t.Error("a released series is remembered")
		}
	}
}

// TestRemembered: Remembered returns the results of the hook and Apply after
// they ran twice.
func TestRemembered(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("a", "job", "p", "n", "1"), series("a", "job", "p", "n", "2"), series("go", "job", "p"), series("c", "job", "q"))
	var m view.Metrics
	var want view.Result[*batch.Metrics]
	for round := range 2 {
		if _, ok := g.Remembered(b); ok {
			t.Errorf("remembered in round %d", round)
		}
		m.Reset(b, g, start)
		err := m.RunSeries(func(_ int, s *view.Series) error {
			if s.Name() == "go" {
				s.Drop()
			}
			return s.SetLabel("n", "")
		})
		if err != nil {
			t.Fatal(err)
		}
		want = m.Apply()
		m.Done()
	}
	for _, times := range [][]int64{b.T, {5, 6, 7, 8}} {
		in := *b
		in.T = times
		got, ok := g.Remembered(&in)
		if !ok {
			t.Fatal("not remembered")
		}
		collisions := want.Collisions
		if times[0] != times[1] {
			collisions = 0
		}
		if got.Dropped != want.Dropped || got.Collisions != collisions || (got.Collision != nil) != (collisions > 0) || got.Emitted != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if !batch.SameColumn(got.Batch.Series, want.Batch.Series) {
			t.Error("another column of series")
		}
	}
	if want.Collisions != 1 || want.Dropped != 1 {
		t.Errorf("%d collide, %d are dropped", want.Collisions, want.Dropped)
	}
}

// TestRollbackOfKnownDrop: Rollback undoes a drop of a row, whether or not the
// operation that dropped it was cached.
func TestRollbackOfKnownDrop(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("a"), series("b"))
	var m view.Metrics
	for round := range 4 {
		m.Reset(b, g, start)
		m.Mark(0)
		if err := m.DropWhere(`name == "a" or name == "b"`); err != nil {
			t.Fatal(err)
		}
		m.Rollback()
		got := m.Apply()
		if diff := cmp.Diff([]string{"a 1"}, text(got.Batch)); diff != "" || got.Dropped != 1 {
			t.Errorf("round %d: %d dropped (-want +got):\n%s", round, got.Dropped, diff)
		}
	}
}
