package ruleset_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/ruleset"
)

// TestMapperHistories plays what sources may do, and compares each batch with
// what the Mapper makes of its series one by one: columns come again or are
// copied, series come and go and leave their IDs to others, batches come late,
// what was released is swept.
func TestMapperHistories(t *testing.T) {
	repeated, late := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := ruleset.NewMapper(upper)
		fresh := func() *batch.Series { return named(fmt.Sprintf("%c%d", "aAxb"[r.IntN(4)], r.IntN(1000))) }
		columns := make([][]*batch.Series, 4) // of the sources
		var gone [][]*batch.Series            // columns with series that were released
		for i := range columns {
			for range 1 + r.IntN(20) {
				columns[i] = append(columns[i], fresh())
			}
		}
		f := func(source int, column []*batch.Series) {
			t.Helper()
			in := rows(column...)
			in.Source, in.Series = uint64(source+1), column
			out, dropped := m.Apply(in)
			at := 0
			for i, s := range column {
				d := m.Series(s)
				if d == nil {
					continue
				}
				if at == out.Len() || out.Series[at] != d || out.V[at] != in.V[i] || out.T[at] != in.T[i] {
					t.Fatalf("seed %d: row %d is not what becomes of %s", seed, at, s)
				}
				if d.Released() && !s.Released() {
					t.Fatalf("seed %d: %s was sent after it was released", seed, d)
				}
				at++
			}
			if at != out.Len() || dropped != len(column)-at {
				t.Fatalf("seed %d: %d rows, %d dropped, want %d, %d", seed, out.Len(), dropped, at, len(column)-at)
			}
		}
		for range 200 {
			i := r.IntN(len(columns))
			switch r.IntN(10) {
			case 0: // a series goes, and another takes its ID
				old := columns[i]
				next := append([]*batch.Series(nil), old...)
				k := r.IntN(len(next))
				next[k].Release()
				next[k] = fresh()
				columns[i] = next
				gone = append(gone, old)
			case 1:
				columns[i] = append([]*batch.Series(nil), columns[i]...)
			case 2:
				if len(gone) > 0 {
					f(i, gone[r.IntN(len(gone))])
					late++
				}
			case 3:
				m.Sweep()
			case 4:
				if r.IntN(5) == 0 {
					m.Close()
				}
			default:
				f(i, columns[i])
				repeated++
			}
		}
		m.Close()
		for _, c := range columns {
			for _, s := range c {
				s.Release()
			}
		}
	}
	if repeated < 1000 || late < 100 {
		t.Errorf("saw %d batches and %d late ones", repeated, late)
	}
}

// TestMapperColumns: who sends the same column again gets the same column.
func TestMapperColumns(t *testing.T) {
	m := ruleset.NewMapper(upper)
	defer m.Close()
	f := func(want bool, next func(*batch.Metrics) *batch.Metrics, ss ...*batch.Series) {
		t.Helper()
		first := rows(ss...)
		a, _ := m.Apply(first)
		b, _ := m.Apply(next(first))
		if same := &a.Series[0] == &b.Series[0]; same != want {
			t.Errorf("%d series: the same column is %v, want %v", len(ss), same, want)
		}
	}
	again := func(b *batch.Metrics) *batch.Metrics {
		next := *b
		next.V = append([]float64(nil), b.V...)
		return &next
	}
	copied := func(b *batch.Metrics) *batch.Metrics {
		next := *b
		next.Series = append([]*batch.Series(nil), b.Series...)
		return &next
	}
	a, b, x := named("a"), named("b"), named("x")
	f(true, again, a, b)
	f(true, again, a, x, b)
	f(false, copied, a, b)
	f(false, copied, a, x, b)
}
