package scrape_test

import (
	"fmt"
	"testing"
	"time"
)

// TestPlaces: targets are spread over the interval, but only over a few slots, so
// that one wake-up serves many targets.
func TestPlaces(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		var tgs []*target
		for i := range 60 {
			tgs = append(tgs, n.target(fmt.Sprintf("t%d:80", i), "a 1\n"))
		}
		start := time.Now().UnixMilli()
		stop := n.Run(t, n.build(t, list(tgs...)))
		seen, second := map[uint64]bool{}, map[uint64]bool{}
		places := map[int64]int{}
		for _, b := range n.wait(t, 150) {
			switch at := millis(b); {
			case !seen[b.Source]:
				seen[b.Source] = true
				if after := at - start; after%250 != 0 || after < 0 || after > 1000 {
					t.Errorf("a target is scraped first after %d ms", after)
				}
			case !second[b.Source]:
				second[b.Source] = true
				places[at%10_000]++
				if at%250 != 0 {
					t.Errorf("a target's place is %d ms", at%10_000)
				}
			}
		}
		stop()
		if len(second) != 60 || len(places) < 20 || len(places) > 40 {
			t.Errorf("%d targets are in %d places %v, want 60 in most of 40", len(second), len(places), places)
		}
	})
}
