package batch_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
)

func TestSignals(t *testing.T) {
	for s, want := range map[batch.Signals]string{
		0: "nothing", batch.SignalMetrics: "metrics", batch.SignalLogs: "logs", batch.SignalMetrics | batch.SignalLogs: "metrics and logs",
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSourcesDiffer(t *testing.T) {
	if a, b := batch.NewSource(), batch.NewSource(); a == b || a == 0 {
		t.Errorf("got %d and %d", a, b)
	}
}

// Select keeps all the data of each row and does not change the batch.
// Filtering the text by lines gives the same result.
func TestSelectAgainstText(t *testing.T) {
	for seed := range uint64(300) {
		r := newRandom(seed)
		b := r.metrics(int(seed % 10))
		before := string(batch.AppendText(nil, b))
		keep := make([]bool, b.Len())
		want := &batch.Metrics{Source: b.Source}
		for i := range keep {
			if keep[i] = r.IntN(2) == 0; keep[i] {
				one := b.Rows([]int{i})
				n := want.Len()
				want.Series, want.T, want.V = append(want.Series, b.Series[i]), append(want.T, b.T[i]), append(want.V, b.V[i])
				for _, h := range one.Histograms {
					h.Row = n
					want.Histograms = append(want.Histograms, h)
				}
				for _, e := range one.Exemplars {
					e.Row = n
					want.Exemplars = append(want.Exemplars, e)
				}
				for _, s := range one.Starts {
					s.Row = n
					want.Starts = append(want.Starts, s)
				}
			}
		}
		got := b.Select(func(i int) bool { return keep[i] })
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		if after := string(batch.AppendText(nil, b)); before != after {
			t.Fatalf("seed %d: the batch was written to", seed)
		}
	}
}

func TestRows(t *testing.T) {
	b, err := batch.ParseText("a 1 # {x=\"1\"} 1 # {x=\"2\"} 2\nb {count:1} st@5\nc 3 st@6 # {x=\"3\"} 3\n", batch.TextOptions{Source: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := func(want string, rows ...int) {
		t.Helper()
		got := b.Rows(rows)
		if text := string(batch.AppendTextAt(nil, got, 0)); text != want || got.Source != 4 {
			t.Errorf("rows %v: got\n%s\nwant\n%s", rows, text, want)
		}
	}
	f("")
	f("a 1 # {x=\"1\"} 1 # {x=\"2\"} 2\n", 0)
	f("b {count:1} st@5\nc 3 st@6 # {x=\"3\"} 3\n", 1, 2)
	f("a 1 # {x=\"1\"} 1 # {x=\"2\"} 2\nc 3 st@6 # {x=\"3\"} 3\n", 0, 2)

	if got := b.Select(func(int) bool { return true }); got != b {
		t.Error("keeping all rows copied the batch")
	}
	if got := b.Select(func(int) bool { return false }); got.Len() != 0 || got == b {
		t.Errorf("keeping none left %d", got.Len())
	}
	asked := 0
	b.Select(func(i int) bool { asked++; return i != 1 })
	if asked != 3 {
		t.Errorf("keep was asked %d times about 3 rows", asked)
	}
}

func ExampleMetrics_Select() {
	b, _ := batch.ParseText("up{job=\"api\"} 1\nup{job=\"web\"} 0\n", batch.TextOptions{})
	down := b.Select(func(row int) bool { return b.V[row] == 0 })
	fmt.Print(string(batch.AppendTextAt(nil, down, 0)))
	// Output: up{job="web"} 0
}
