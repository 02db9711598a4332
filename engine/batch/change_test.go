package batch_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
)

// TestRowRuns compares with a plain list of rows.
func TestRowRuns(t *testing.T) {
	r := newRandom(5)
	for range 200 {
		var rows batch.Rows
		var want []int
		for i := range r.IntN(40) {
			if r.IntN(3) > 0 {
				rows.Add(i)
				want = append(want, i)
			}
		}
		var got []int
		for i := range rows.All() {
			got = append(got, i)
		}
		if diff := cmp.Diff(want, got); diff != "" || rows.Len() != len(want) {
			t.Fatalf("%d rows (-want +got):\n%s", rows.Len(), diff)
		}
	}
	var rows batch.Rows
	for i := range 5 {
		rows.Add(i)
	}
	for i := range rows.All() {
		if i == 2 {
			break
		} else if i > 2 {
			t.Fatal("goes on after a break")
		}
	}
}

// TestChange compares the result with a row-by-row implementation.
func TestChange(t *testing.T) {
	r := newRandom(6)
	changed, dropped, whole := 0, 0, 0
	for range 500 {
		in := r.metrics(r.IntN(12))
		become := make([]*batch.Series, in.Len())
		var rows []int
		mode := r.IntN(4) // 0 replaces no series, 1 drops no rows
		same := true
		for i, s := range in.Series {
			become[i] = s
			if mode != 0 && r.IntN(3) == 0 {
				become[i] = r.series()
			}
			if mode != 1 && r.IntN(4) == 0 {
				become[i] = nil
			}
			if become[i] != nil {
				rows = append(rows, i)
			}
			same = same && become[i] == s
		}
		want := in.Rows(rows)
		for j, i := range rows {
			want.Series[j] = become[i]
		}
		c := batch.NewChange(in.Series, append([]*batch.Series(nil), become...))
		got := c.Apply(in)
		if c.Dropped() != in.Len()-len(rows) {
			t.Fatalf("%d dropped, want %d", c.Dropped(), in.Len()-len(rows))
		}
		if diff := cmp.Diff(dump(want), dump(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for i := range want.Series {
			if got.Series[i] != want.Series[i] {
				t.Fatalf("row %d has another handle of %s", i, want.Series[i])
			}
		}
		again := c.Apply(in)
		switch {
		case same:
			whole++
			if got != in {
				t.Fatal("nothing changes, and the batch is another one")
			}
		case len(rows) == in.Len():
			changed++
			if unsafe.SliceData(got.V) != unsafe.SliceData(in.V) || unsafe.SliceData(got.T) != unsafe.SliceData(in.T) {
				t.Fatal("columns that do not change are not shared")
			}
			fallthrough
		default:
			dropped++
			if unsafe.SliceData(got.Series) != unsafe.SliceData(again.Series) || cap(got.Series) != len(got.Series) {
				t.Fatal("another column the second time, or one that could be appended to")
			}
			if cap(got.T) != len(got.T) && len(rows) < in.Len() {
				t.Fatal("the times could be appended to")
			}
		}
	}
	if changed < 20 || dropped < 20 || whole < 20 {
		t.Errorf("saw %d changed, %d dropped, %d whole", changed, dropped, whole)
	}
}

// dump describes everything in a batch.
func dump(b *batch.Metrics) []string {
	var out []string
	for i, s := range b.Series {
		out = append(out, fmt.Sprintf("%s %x %d", s, b.V[i], b.T[i]))
	}
	for _, h := range b.Histograms {
		out = append(out, fmt.Sprintf("histogram %d %p %p", h.Row, h.Int, h.Float))
	}
	for _, e := range b.Exemplars {
		out = append(out, fmt.Sprint("exemplar ", e))
	}
	for _, s := range b.Starts {
		out = append(out, fmt.Sprint("start ", s))
	}
	return append(out, fmt.Sprint("source ", b.Source, " way ", b.Way))
}

func TestColumnMemo(t *testing.T) {
	r := newRandom(7)
	a, b := []*batch.Series{r.series(), r.series()}, []*batch.Series{r.series(), r.series()}
	of := func(source uint64, column []*batch.Series) *batch.Metrics {
		return &batch.Metrics{Source: source, Series: column, T: make([]int64, len(column)), V: make([]float64, len(column))}
	}
	var m batch.ColumnMemo[string]
	f := func(b *batch.Metrics, want string) {
		t.Helper()
		got, _, ok := m.Get(b.Origin(), b.Series)
		if got != want || ok != (want != "") {
			t.Errorf("got %q, %v, want %q", got, ok, want)
		}
	}
	put := func(b *batch.Metrics, v string) {
		_, at, _ := m.Get(b.Origin(), b.Series)
		m.Put(b.Origin(), b.Series, v, at)
	}
	f(of(1, a), "")
	put(of(1, a), "a")
	f(of(1, a), "a")
	f(of(1, append([]*batch.Series(nil), a...)), "") // equal series, but in another slice
	f(of(1, a[:1]), "")
	f(of(2, a), "")
	f(of(1, a).Along(7), "")
	put(of(1, b), "b") // only the last column of the Origin
	f(of(1, a), "")
	f(of(1, b), "b")

	// A column that no batch uses is removed.
	put(of(2, a), "2a")
	for range 3 {
		m.Sweep()
		f(of(1, b), "b")
	}
	f(of(2, a), "")

	// A column whose series are released is removed.
	put(of(2, a), "2a")
	a[1].Release()
	m.Sweep()
	f(of(2, a), "")
	f(of(1, b), "b")

	// A value that was computed before Revoke is not kept.
	last := of(2, b)
	_, at, _ := m.Get(last.Origin(), last.Series)
	m.Revoke()
	f(of(1, b), "")
	m.Put(last.Origin(), last.Series, "2b", at)
	f(of(2, b), "")
	put(of(2, b), "2b")
	f(of(2, b), "2b")

	put(of(1, nil), "empty")
	f(of(1, nil), "")
	pushed := batch.NewPushSource()
	put(of(pushed, b), "pushed")
	f(of(pushed, b), "")
}
