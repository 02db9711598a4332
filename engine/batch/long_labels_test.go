package batch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
)

// TestLongLabels tests the lengths at which the length prefix grows by a byte.
func TestLongLabels(t *testing.T) {
	lengths := []int{1, 60, 61, 62, 63, 64, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 16380, 16384, 16390}
	for _, n := range lengths {
		for _, v := range lengths {
			want := []batch.Label{
				{Name: "a", Value: "1"},
				{Name: strings.Repeat("n", n), Value: strings.Repeat("v", v)},
				{Name: "z", Value: "2"},
			}
			s := batch.NewSeries(want)
			if diff := cmp.Diff(want, s.AppendLabels(nil)); diff != "" {
				t.Fatalf("%d, %d (-want +got):\n%.500s", n, v, diff)
			}
			for _, l := range want {
				if got := s.Label(l.Name); got != l.Value {
					t.Fatalf("%d, %d: label %.10s has %d bytes, want %d", n, v, l.Name, len(got), len(l.Value))
				}
			}
			if s.Label(strings.Repeat("n", n+1)) != "" || s.Label("") != "" {
				t.Fatalf("%d, %d: a label that is not there", n, v)
			}
			s.Release()
		}
	}
}
