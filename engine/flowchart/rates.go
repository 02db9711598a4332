package flowchart

// Rates are per second, in the last minute.
type Rates struct {
	In      float64 `json:"in"`      // samples and log lines that arrived
	Out     float64 `json:"out"`     // samples and log lines that were sent, once for each receiver
	Dropped float64 `json:"dropped"` // samples and log lines
	Waiting int64   `json:"waiting"` // samples and log lines in the queue
}

// flow sets the rates of the edges. The rates of a node's edges in a direction add up to
// its own, so the last unknown rate follows from the known ones. If none follows, a node's
// rest is divided among its edges.
func (g *Graph) flow() {
	type side struct {
		left    float64
		unknown []int // edges
	}
	out, in := map[string]*side{}, map[string]*side{}
	for i := range g.Nodes {
		if r := g.Nodes[i].Rates; r != nil {
			out[g.Nodes[i].ID], in[g.Nodes[i].ID] = &side{left: r.Out}, &side{left: r.In}
		}
	}
	unknown := 0
	for i, e := range g.Edges {
		if from, to := out[e.From], in[e.To]; !e.Reference && from != nil && to != nil {
			from.unknown, to.unknown = append(from.unknown, i), append(to.unknown, i)
			unknown++
		}
	}
	set := func(i int, rate float64, estimated bool) {
		e := &g.Edges[i]
		rate = max(rate, 0) // the counters are not read at the same moment
		e.Rate, e.Estimated = &rate, estimated
		for _, s := range []*side{out[e.From], in[e.To]} {
			s.left -= rate
			for j, k := range s.unknown {
				if k == i {
					s.unknown = append(s.unknown[:j], s.unknown[j+1:]...)
					break
				}
			}
		}
		unknown--
	}
	for unknown > 0 {
		progress := false
		for i, e := range g.Edges {
			if e.Reference || e.Rate != nil || out[e.From] == nil || in[e.To] == nil {
				continue
			}
			from, to := out[e.From], in[e.To]
			switch {
			case len(from.unknown) == 1:
				set(i, from.left, false)
			case len(to.unknown) == 1:
				set(i, to.left, false)
			default:
				continue
			}
			progress = true
		}
		if progress {
			continue
		}
		for i, e := range g.Edges {
			if from := out[e.From]; from != nil && len(from.unknown) > 0 && from.unknown[0] == i {
				set(i, from.left/float64(len(from.unknown)), true)
				break
			}
		}
	}
}
