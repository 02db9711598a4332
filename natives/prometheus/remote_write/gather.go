package remotewrite

import (
	"context"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

// maxDeadline is how long a block stays open for more samples.
const maxDeadline = 100 * time.Millisecond

// kindV1 is the journal's kind of blocks that are a WriteRequest of remote
// write 1.0, compressed with snappy.
const kindV1 = 1

// gatherer joins the batches of one lane into blocks and the blocks into
// groups. A group is what is written to the journal at once: a batch is in one
// group, so that it is accepted whole or not at all.
type gatherer struct {
	e    *endpoint
	lane int
	kick chan struct{} // capacity 1: a group was opened

	mu       sync.Mutex
	stopping bool
	group    *group
	open     []byte // the open block, not compressed
	samples  int    // in open
	first    int64  // lowest timestamp in open
	scratch  []byte
}

// group is samples that wait for their journal write.
type group struct {
	deadline time.Time
	blocks   []journal.Block
	done     chan struct{} // closed after err is set
	err      error
}

// buffers are what an open block and its compression need; between blocks a
// lane holds none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledBuffer = 4 << 20

func getBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func putBuffer(b []byte) {
	if cap(b) > 0 && cap(b) <= maxPooledBuffer {
		buffers.Put(&b)
	}
}

// add puts a batch into the lane's group and returns when that is written.
func (g *gatherer) add(s *settings, b *batch.Metrics) error {
	gr, skipped := g.place(s, b)
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
// to be sent, and how many samples are not, by reason.
func (g *gatherer) place(s *settings, b *batch.Metrics) (_ *group, skipped map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.group == nil {
		g.group = &group{deadline: g.e.clock.Now().Add(s.deadline), done: make(chan struct{})}
		select {
		case g.kick <- struct{}{}:
		default:
		}
	}
	gr := g.group
	skipped = g.encode(s, b)
	switch {
	case g.samples == 0 && len(gr.blocks) == 0:
		g.group = nil // nobody waits for it
		gr = nil
	case g.samples == 0 || len(gr.blocks) >= s.groupBlocks || g.stopping:
		g.commit()
	}
	return gr, skipped
}

func (g *gatherer) encode(s *settings, b *batch.Metrics) (skipped map[string]int) {
	skip := func(reason string) {
		if skipped == nil {
			skipped = map[string]int{}
		}
		skipped[reason]++
	}
	hs, es := b.Histograms, b.Exemplars
	for i, series := range b.Series {
		wire := series.Wire()
		if s.labels != nil {
			if wire = s.labels.wire(series); wire == "" {
				skip("write_relabel")
				continue
			}
		}
		if g.open == nil {
			g.open = getBuffer()
		}
		t := b.T[i]
		var h *batch.Histogram
		var exemplars []batch.Exemplar
		if len(hs) > 0 {
			for len(hs) > 0 && hs[0].Row < i {
				hs = hs[1:]
			}
			if len(hs) > 0 && hs[0].Row == i {
				h = &hs[0]
				if !s.histograms {
					skip("native_histogram")
					continue
				}
			}
		}
		if len(es) > 0 && s.exemplars {
			for len(es) > 0 && es[0].Row < i {
				es = es[1:]
			}
			n := 0
			for n < len(es) && es[n].Row == i {
				n++
			}
			exemplars = es[:n]
		}
		if h == nil && len(exemplars) == 0 {
			g.open = appendSample(g.open, wire, t, b.V[i])
		} else {
			before := len(g.open)
			var err error
			g.open, g.scratch, err = appendSeries(g.open, g.scratch, wire, t, b.V[i], h, exemplars)
			if err != nil {
				g.open = g.open[:before]
				skip("cannot_encode")
				continue
			}
		}
		if g.samples == 0 || t < g.first {
			g.first = t
		}
		g.samples++
		if g.samples >= s.maxSamples {
			g.closeBlock()
		}
	}
	return skipped
}

// closeBlock compresses the open block into the group. mu is held.
func (g *gatherer) closeBlock() {
	buf := getBuffer()
	if n := s2.MaxEncodedLen(len(g.open)); cap(buf) < n {
		buf = make([]byte, n)
	}
	// The library's snappy.Encode compresses 3 % better in three times the time.
	out := s2.EncodeSnappy(buf[:cap(buf)], g.open)
	g.group.blocks = append(g.group.blocks, journal.Block{
		Lane: g.lane, Kind: kindV1, Samples: g.samples, First: g.first, Payload: append(getBuffer(), out...),
	})
	putBuffer(buf)
	g.open, g.samples = g.open[:0], 0
}

// commit writes the group to the journal. mu is held: blocks of a lane are
// written in the order of their samples.
func (g *gatherer) commit() {
	gr := g.group
	g.group = nil
	gr.err = errStopping // for who waits, should Append panic
	defer close(gr.done)
	if g.samples > 0 {
		g.group = gr
		g.closeBlock()
		g.group = nil
	}
	gr.err = g.e.journal.Append(gr.blocks...)
	for i := range gr.blocks {
		putBuffer(gr.blocks[i].Payload)
	}
	gr.blocks = nil
	putBuffer(g.open)
	g.open = nil
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
		if gr == nil {
			continue
		}
		timer.Reset(gr.deadline.Sub(g.e.clock.Now()))
		select {
		case <-timer.C():
		case <-gr.done:
			continue
		case <-ctx.Done():
			g.flush()
			return
		}
		g.expire(gr)
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
