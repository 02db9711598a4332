package outbox

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// The lane of a series is in journals on disk: it must be the same in every process
// and every version, unlike batch.Series.Hash.
func TestLanesOfSeries(t *testing.T) {
	b := &batch.Metrics{}
	for _, name := range []string{"up", "down", "left", "right", "strange"} {
		b.Series = append(b.Series, batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: name}}))
	}
	f := func(s Split, want ...int) {
		t.Helper()
		got := make([]int, b.Len())
		for lane, rows := range s.lanes(Batch{Metrics: b}, 8) {
			for row := range rows.All() {
				got[row] = lane
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: the lanes are %v, want %v", s, got, want)
		}
	}
	f(Split{Series: true}, 2, 7, 7, 4, 4)
	f(Split{By: []string{batch.NameLabel}}, 7, 4, 7, 0, 0)
}
