package batch_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// SetAll and Keep give the same result as Set for each label.
func TestBuilderAll(t *testing.T) {
	r := random{rand.New(rand.NewPCG(3, 4))}
	for range 1000 {
		var ls []batch.Label
		for range r.IntN(12) {
			ls = append(ls, batch.Label{Name: pick(r, []string{"a", "b", "c", "d", "e"}), Value: pick(r, []string{"", "1", "2"})})
		}
		var one, all batch.Builder
		for _, l := range ls {
			one.Set(l.Name, l.Value)
		}
		all.Set("before", "x")
		all.SetAll(ls)
		if !slices.Equal(one.Labels(), all.Labels()) {
			t.Fatalf("%v: SetAll makes %v, want %v", ls, all.Labels(), one.Labels())
		}
		one.Set("b", "")
		all.Keep(func(l batch.Label) bool { return l.Name != "b" })
		if !slices.Equal(one.Labels(), all.Labels()) {
			t.Fatalf("%v: Keep leaves %v, want %v", ls, all.Labels(), one.Labels())
		}
	}
}
