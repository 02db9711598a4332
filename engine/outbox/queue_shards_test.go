package outbox

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// Journals on disk contain the shard of a series. Unlike batch.Series.Hash, it
// must be the same in every process and every version.
func TestShardsOfSeries(t *testing.T) {
	b := &batch.Metrics{}
	for _, name := range []string{"up", "down", "left", "right", "strange"} {
		b.Series = append(b.Series, batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: name}}))
	}
	f := func(s Split, want ...int) {
		t.Helper()
		got := make([]int, b.Len())
		for shard, rows := range s.shards(Batch{Metrics: b}, 8) {
			for row := range rows.All() {
				got[row] = shard
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: the shards are %v, want %v", s, got, want)
		}
	}
	f(Split{Series: true}, 2, 7, 7, 4, 4)
	f(Split{By: []string{batch.NameLabel}}, 7, 4, 7, 0, 0)
}
