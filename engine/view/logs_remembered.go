package view

import "github.com/weir-run/weir/engine/batch"

// RememberedLogs returns the result of RunSeries and Apply for b, if it is
// known without calling the hook.
func (g *Cache) RememberedLogs(b *batch.Logs) (r Result[*batch.Logs], ok bool) {
	var become []*batch.Stream
	var last, to *batch.Stream // consecutive lines often have the same stream
	for i, s := range b.Stream {
		if s != last || i == 0 {
			d, known := g.streams.Get(s)
			if !known {
				return r, false
			}
			last, to = s, d
		}
		if to != s && become == nil {
			become = append(make([]*batch.Stream, 0, len(b.Stream)), b.Stream[:i]...)
		}
		if become != nil {
			become = append(become, to)
		}
	}
	if become == nil {
		return Result[*batch.Logs]{Batch: b}, true
	}
	change := batch.NewChange(b.Stream, become)
	return Result[*batch.Logs]{Batch: change.ApplyLogs(b), Dropped: change.Dropped()}, true
}
