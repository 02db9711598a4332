package remotewrite

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

// maxDeadline is how long a block stays open for more samples.
const maxDeadline = 100 * time.Millisecond

// gatherer joins the batches of the sources of one lane into blocks and the
// blocks into groups. A group is what is written to the journal at once: a
// batch is in one group, so that it is accepted whole or not at all.
type gatherer struct {
	e    *endpoint
	lane int
	kick chan struct{} // capacity 1: a group was opened

	mu       sync.Mutex
	stopping bool
	group    *group
	labels   *labeler // of the group before
}

// group is samples that wait for their journal write. All of it is gathered
// under the same settings.
type group struct {
	s        *settings
	deadline time.Time
	open     block
	blocks   []journal.Block
	split    *split // with header_from_label: what is encoded when the group is written
	done     chan struct{}
	err      error // set before done is closed
}

// empty reports whether there is nothing to write.
func (gr *group) empty() bool {
	return gr.open.samples == 0 && len(gr.blocks) == 0 && (gr.split == nil || gr.split.rows == 0)
}

// full reports whether it is time to write: the open block was just closed, or
// there is as much as may be gathered.
func (gr *group) full() bool {
	if gr.split != nil {
		return gr.split.rows >= gr.s.groupBlocks*gr.s.maxSamples
	}
	return gr.open.samples == 0 || len(gr.blocks) >= gr.s.groupBlocks
}

// wait returns when a group is written that a batch was placed in.
func (g *gatherer) wait(gr *group, skipped map[string]int) error {
	if gr != nil {
		// Not in the caller's ctx: the outcome is known within the deadline,
		// and a batch that is reported as refused must not arrive.
		<-gr.done
		if gr.err != nil {
			return gr.err
		}
	}
	for reason, n := range skipped {
		g.e.drop(reason, n)
	}
	return nil
}

// place returns the group that the batch waits for, nil when nothing of it is
// to be sent, and how many samples are not, by reason. Not ok means that the
// batch belongs to another lane: used is not the number of them any more.
func (g *gatherer) place(s *settings, b *batch.Metrics, used int32) (_ *group, skipped map[string]int, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.e.lanes.used.Load() != used {
		return nil, nil, false
	}
	if g.group != nil && g.group.s != s {
		g.commit()
	}
	if g.labels != s.labels {
		if g.labels.splits() || s.labels.splits() {
			g.e.journal.Barrier() // series are in other lanes now
		}
		g.labels = s.labels
	}
	if g.group == nil {
		g.group = newGroup(s, g.e.message(s), g.e.clock.Now())
		select {
		case g.kick <- struct{}{}:
		default:
		}
	}
	gr := g.group
	skipped = g.take(gr, b)
	switch {
	case gr.empty():
		g.group = nil // nobody waits for it
		gr.open.free()
		gr = nil
	case gr.full() || g.stopping:
		g.commit()
	}
	return gr, skipped, true
}

func newGroup(s *settings, m message, now time.Time) *group {
	gr := &group{s: s, deadline: s.due(now), done: make(chan struct{}), open: block{s: s, message: m}}
	if s.args.HeaderFromLabel != nil {
		gr.split = &split{byValue: map[string]*[]row{}}
	}
	return gr
}

// due returns when a group that is opened now is written: groups of several lanes
// that were opened within a quarter of the deadline are written at once. To wake
// up costs more than to write.
func (s *settings) due(now time.Time) time.Time {
	return now.Add(s.deadline - time.Duration(now.UnixNano()%max(int64(s.deadline)/4, 1)))
}

// take puts the rows of a batch into a group.
func (g *gatherer) take(gr *group, b *batch.Metrics) (skipped map[string]int) {
	skip := func(reason string) {
		if skipped == nil {
			skipped = map[string]int{}
		}
		skipped[reason]++
	}
	s, cols := gr.s, newSparse(b)
	any := len(cols.histograms)+len(cols.exemplars)+len(cols.starts) > 0
	for i, series := range b.Series {
		out := s.labels.sent(series)
		if out.dropped() {
			skip("write_relabel")
			continue
		}
		r := row{series: series, wire: out.wire, t: b.T[i], v: b.V[i]}
		if any {
			cols.fill(&r, i)
			if r.h != nil && !s.args.SendNativeHistograms {
				skip("native_histogram")
				continue
			}
			if !s.args.SendExemplars {
				r.exemplars = nil
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
			gr.blocks = append(gr.blocks, gr.open.close(g.lane, ""))
		}
	}
	return skipped
}

// commit writes the group to the journal. mu is held: blocks of a lane are
// written in the order of their samples.
func (g *gatherer) commit() {
	gr := g.group
	g.group = nil
	gr.err = errStopping // for who waits, should Append panic
	defer close(gr.done)
	lost := 0
	if gr.split != nil {
		lost = gr.split.encode(gr, g.lane, g.e.journal.Lanes())
	} else if gr.open.samples > 0 {
		gr.blocks = append(gr.blocks, gr.open.close(g.lane, ""))
	}
	gr.open.free()
	gr.err = g.e.journal.Append(gr.blocks...)
	if gr.err == nil {
		g.e.drop("cannot_encode", lost)
	}
	for i := range gr.blocks {
		putBuffer(gr.blocks[i].Payload)
	}
	gr.blocks = nil
}

// run commits groups at their deadline until ctx ends, then what is open, and
// from then on every batch at once.
func (g *gatherer) run(ctx context.Context) {
	timer := g.e.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-g.kick:
		case <-ctx.Done():
			g.flush()
			return
		}
		g.mu.Lock()
		gr := g.group
		g.mu.Unlock()
		if gr == nil { // it was full
			g.e.lanes.review()
			continue
		}
		timer.Reset(gr.deadline.Sub(g.e.clock.Now()))
		select {
		case <-timer.C():
			g.expire(gr)
		case <-gr.done:
		case <-ctx.Done():
			g.flush()
			return
		}
		g.e.lanes.review()
	}
}

// expire commits a group unless that was done.
func (g *gatherer) expire(gr *group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.group == gr {
		g.commit()
	}
}

func (g *gatherer) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	if g.group != nil {
		g.commit()
	}
}
