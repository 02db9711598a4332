package history

import (
	"time"

	"github.com/weir-run/weir/engine/service"
)

// Rates are samples and log lines per second in the last minute.
type Rates struct{ In, Out, Dropped float64 }

// Rates returns the rates of nodes in the last minute until now, or since the node is
// recorded. They are 0 for nodes that are not recorded yet.
func (r *Recorder) Rates(infos []service.Info, now time.Time) []Rates {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Rates, len(infos))
	for k, i := range infos {
		n := r.nodes[i.ID]
		if n == nil || i.Stats == nil {
			continue
		}
		first := n.last
		for _, c := range n.recent {
			if c.stats == i.Stats && c.point > r.points-1-recent && c.time.Before(first.time) {
				first = c
			}
		}
		c := countsOf(i, now, 0)
		seconds := now.Sub(first.time).Seconds()
		if first.stats != i.Stats || seconds <= 0 {
			continue
		}
		rate := func(now, before uint64) float64 { return float64(now-min(before, now)) / seconds }
		out[k] = Rates{rate(c.in, first.in), rate(c.out, first.out), rate(c.dropped, first.dropped)}
	}
	return out
}
