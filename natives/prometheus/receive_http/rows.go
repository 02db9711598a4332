package receivehttp

import "github.com/weir-run/weir/engine/batch"

// rows are the samples of one request, in memory that is reused.
type rows struct {
	series     []*batch.Series
	t          []int64
	v          []float64
	histograms []batch.Histogram
	exemplars  []batch.Exemplar
	starts     []batch.Start
}

func (r *rows) reset() {
	clear(r.series) // otherwise, they would retain labels
	clear(r.histograms)
	clear(r.exemplars)
	r.series, r.t, r.v = r.series[:0], r.t[:0], r.v[:0]
	r.histograms, r.exemplars, r.starts = r.histograms[:0], r.exemplars[:0], r.starts[:0]
}

// cut removes the rows from n on. They have no exemplars yet.
func (r *rows) cut(n int) {
	r.series, r.t, r.v = r.series[:min(n, len(r.series))], r.t[:n], r.v[:n]
	for len(r.histograms) > 0 && r.histograms[len(r.histograms)-1].Row >= n {
		r.histograms = r.histograms[:len(r.histograms)-1]
	}
	for len(r.starts) > 0 && r.starts[len(r.starts)-1].Row >= n {
		r.starts = r.starts[:len(r.starts)-1]
	}
}

// split returns the rows as a batch for each of n shards, nil if there are none.
// A series is always in the same shard, which keeps its samples in order.
func (r *rows) split(n uint64) []*batch.Metrics {
	counts := make([]int, n)
	for _, s := range r.series {
		counts[s.Hash()%n]++
	}
	out := make([]*batch.Metrics, n)
	for shard, c := range counts {
		if c > 0 {
			out[shard] = &batch.Metrics{Series: make([]*batch.Series, 0, c), T: make([]int64, 0, c), V: make([]float64, 0, c)}
		}
	}
	hs, es, sts := r.histograms, r.exemplars, r.starts
	for i, s := range r.series {
		b := out[s.Hash()%n]
		row := len(b.Series)
		b.Series, b.T, b.V = append(b.Series, s), append(b.T, r.t[i]), append(b.V, r.v[i])
		if len(hs) > 0 && hs[0].Row == i {
			h := hs[0]
			h.Row = row
			b.Histograms, hs = append(b.Histograms, h), hs[1:]
		}
		for len(es) > 0 && es[0].Row == i {
			e := es[0]
			e.Row = row
			b.Exemplars, es = append(b.Exemplars, e), es[1:]
		}
		if len(sts) > 0 && sts[0].Row == i {
			b.Starts, sts = append(b.Starts, batch.Start{Row: row, T: sts[0].T}), sts[1:]
		}
	}
	return out
}
