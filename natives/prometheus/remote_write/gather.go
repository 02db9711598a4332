package remotewrite

import (
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// gatherer collects the batches of the sources of one shard into blocks, and
// blocks into groups.
type gatherer struct {
	outbox.Gatherer[*group]
	e      *endpoint
	shard  int
	labels *labeler // of the previous group
}

// group is samples that are written to the journal together. All of them were
// gathered under the same settings.
type group struct {
	outbox.Group
	s      *settings
	open   block
	blocks []journal.Block
	split  *split // with header_from_label: the rows, which are encoded when the group is written
	lost   int    // number of rows of split that could not be encoded
}

func newGatherer(e *endpoint, shard int, labels *labeler) *gatherer {
	g := &gatherer{e: e, shard: shard, labels: labels}
	g.Init(e.Remote, outbox.Hooks[*group]{Close: g.close, Written: g.written, After: func() { e.shards.review() }})
	return g
}

// empty reports whether there is nothing to write.
func (gr *group) empty() bool {
	return gr.open.samples == 0 && len(gr.blocks) == 0 && (gr.split == nil || gr.split.rows == 0)
}

// full reports whether the group should be written: its open block was just
// closed, or it contains the maximum number of samples.
func (gr *group) full() bool {
	if gr.split != nil {
		return gr.split.rows >= gr.s.groupBlocks*gr.s.maxSamples
	}
	return gr.open.samples == 0 || len(gr.blocks) >= gr.s.groupBlocks
}

// wait waits until the group that contains a batch is written.
func (g *gatherer) wait(gr *group, skipped map[string]int) error {
	if gr != nil {
		if err := gr.Wait(); err != nil {
			return err
		}
	}
	g.e.dropCustomBuckets(skipped[reasonCustomBuckets])
	delete(skipped, reasonCustomBuckets)
	for reason, n := range skipped {
		g.e.Drop(reason, n)
	}
	return nil
}

// place adds a batch to a group and returns the group, or nil if none of its
// samples are sent. skipped is the number of samples that are not sent, by
// reason. If ok is false, the batch belongs to another shard, because the number
// of shards in use is not used any more.
func (g *gatherer) place(s *settings, b *batch.Metrics, used int32) (_ *group, skipped map[string]int, ok bool) {
	g.Lock()
	defer g.Unlock()
	if g.e.shards.used.Load() != used {
		return nil, nil, false
	}
	if g.Open != nil && g.Open.s != s {
		g.Commit()
	}
	if g.labels != s.labels {
		if g.labels.splits() || s.labels.splits() {
			g.e.Journal.Barrier() // series are in other shards now
		}
		g.labels = s.labels
	}
	if g.Open == nil {
		g.Begin(newGroup(s, g.e.message(s)), s.deadline)
		g.Kick()
	}
	gr := g.Open
	skipped = g.addRows(gr, b)
	switch {
	case gr.empty():
		g.Open = nil // nobody waits for it
		gr.open.free()
		gr = nil
	case gr.full() || g.Stopping:
		g.Commit()
	}
	return gr, skipped, true
}

func newGroup(s *settings, m message) *group {
	gr := &group{s: s, open: block{s: s, message: m}}
	if s.args.HeaderFromLabel != nil {
		gr.split = &split{byValue: map[string]*[]row{}}
	}
	return gr
}

// addRows adds the rows of a batch to a group.
func (g *gatherer) addRows(gr *group, b *batch.Metrics) (skipped map[string]int) {
	skip := func(reason string) {
		if skipped == nil {
			skipped = map[string]int{}
		}
		skipped[reason]++
	}
	s, cols := gr.s, newSparse(b)
	more := len(cols.histograms)+len(cols.exemplars)+len(cols.starts) > 0
	for i, series := range b.Series {
		out := s.labels.sent(series)
		if out.dropped() {
			skip("write_relabel")
			continue
		}
		r := row{series: series, wire: out.wire, t: b.T[i], v: b.V[i]}
		if more {
			cols.fill(&r, i)
			if r.h != nil && !s.args.SendNativeHistograms {
				skip("native_histogram")
				continue
			}
			if r.h != nil {
				if reason := unsendable(r.h, gr.open.message); reason != "" {
					skip(reason)
					continue
				}
			}
			if !s.args.SendExemplars {
				r.exemplars = nil
			} else if len(r.exemplars) > 0 {
				r.exemplars = g.e.sendable(r.exemplars)
			}
		}
		if gr.split != nil {
			if reason := gr.split.add(s, out.value, r); reason != "" {
				skip(reason)
			}
			continue
		}
		if err := gr.open.add(&r); err != nil {
			skip("cannot_encode")
			continue
		}
		if gr.open.full() {
			gr.blocks = append(gr.blocks, gr.open.close(g.shard, ""))
		}
	}
	return skipped
}

// close returns the blocks of a group.
func (g *gatherer) close(gr *group) []journal.Block {
	if gr.split != nil {
		gr.lost = gr.split.encode(gr, g.shard, g.e.Journal.Shards())
	} else if gr.open.samples > 0 {
		gr.blocks = append(gr.blocks, gr.open.close(g.shard, ""))
	}
	gr.open.free()
	return gr.blocks
}

// written completes a group. If err is not nil, the group is not in the journal.
func (g *gatherer) written(gr *group, err error) {
	if err == nil {
		g.e.Drop("cannot_encode", gr.lost)
	}
	for i := range gr.blocks {
		putBuffer(gr.blocks[i].Payload)
	}
	gr.blocks = nil
}
