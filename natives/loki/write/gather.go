package write

import (
	"context"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

const (
	// gatherFor is how long a group stays open for more lines.
	gatherFor = 100 * time.Millisecond
	// maxGather is how many bytes of lines a group has when it is written.
	maxGather = 128 << 10
	// enough is how many a batch has that is written at once: its source has
	// more where that came from, and waits.
	enough = 32 << 10
)

// A journal has lanes for lines without a tenant of their own, of which each
// belongs to some sources, and those for the others, of which each belongs to
// some tenants: who is not let in, or not so much, holds up nobody but them.
const (
	minShards   = 4
	maxShards   = 32
	tenantLanes = 24
)

// lanes returns how many lanes a new journal gets.
func (q *Queue) lanes() int { return min(max(q.MinShards, minShards), maxShards) + tenantLanes }

// shards returns how many of a journal's lanes belong to sources: the first.
func shards(lanes int) int { return max(lanes-tenantLanes, 1) }

// lanes spreads sources over gatherers.
type lanes struct {
	gatherers []*gatherer
}

func newLanes(e *endpoint) *lanes {
	l := &lanes{}
	for lane := range shards(e.journal.Lanes()) {
		l.gatherers = append(l.gatherers, &gatherer{e: e, lane: lane, kick: make(chan struct{}, 1)})
	}
	return l
}

// add gathers a batch and returns when it is written.
func (l *lanes) add(s *settings, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	g := l.gatherers[b.Source%uint64(len(l.gatherers))]
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

// gatherer joins the batches of some sources into blocks and the blocks into
// groups. A group is what is written to the journal at once: a batch is in one
// group, so that it is accepted whole or not at all.
type gatherer struct {
	e    *endpoint
	lane int
	kick chan struct{} // capacity 1: a group was opened

	mu       sync.Mutex
	stopping bool
	group    *group
	rows     grouped
}

// group is lines that wait for their journal write. All of it is gathered under
// the same settings.
type group struct {
	s        *settings
	deadline time.Time
	own      block // for the endpoint's tenant
	tenants  map[string]*block
	order    []*block // of tenants, in the order they came
	blocks   []journal.Block
	size     int // bytes of streams
	done     chan struct{}
	err      error // set before done is closed
}

// place returns the group that the batch waits for, nil when nothing of it is
// to be sent, and how many lines are not, by reason.
func (g *gatherer) place(s *settings, b *batch.Logs) (_ *group, skipped map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.group != nil && g.group.s != s {
		g.commit()
	}
	opened := g.group == nil
	if opened {
		now := g.e.clock.Now()
		g.group = &group{s: s, deadline: due(now), done: make(chan struct{}), own: block{size: s.blockSize}}
	}
	gr := g.group
	before := gr.size
	skipped = g.take(gr, b)
	switch {
	case gr.size == before:
		if opened {
			g.group = nil // nobody waits for it
		}
		return nil, skipped
	case gr.size >= s.gather || gr.size-before >= enough || g.stopping:
		g.commit()
	case opened:
		select {
		case g.kick <- struct{}{}:
		default:
		}
	}
	return gr, skipped
}

// due returns when a group that is opened now is written: groups of several lanes
// that were opened within a quarter of the time are written at once. To wake up
// costs more than to write.
func due(now time.Time) time.Time {
	return now.Add(gatherFor - time.Duration(now.UnixNano()%int64(gatherFor/4)))
}

// take puts the rows of a batch into a group, stream after stream.
func (g *gatherer) take(gr *group, b *batch.Logs) (skipped map[string]int) {
	s := gr.s
	g.rows.of(b)
	defer g.rows.forget()
	for _, run := range g.rows.runs {
		what := s.streams.sent(run.stream)
		reason := ""
		if !validTenant(what.tenant) {
			reason = "tenant_invalid"
		} else if !s.streams.admit(what, s.maxStreams) {
			reason = "max_streams"
		}
		if reason != "" {
			if skipped == nil {
				skipped = map[string]int{}
			}
			skipped[reason] += run.n
			continue
		}
		bl, lane := gr.block(g, what.tenant)
		for row := run.first; row >= 0; {
			before := len(bl.buf)
			row = bl.add(what.labels, b, row, g.rows.next)
			gr.size += len(bl.buf) - before
			if row >= 0 {
				gr.blocks = append(gr.blocks, bl.close(lane))
			}
		}
	}
	return skipped
}

// block returns the open block of a tenant, and its lane.
func (gr *group) block(g *gatherer, tenant string) (*block, int) {
	if tenant == "" {
		if gr.own.buf == nil {
			gr.own.buf = getBuffer(0)
		}
		return &gr.own, g.lane
	}
	bl := gr.tenants[tenant]
	if bl == nil {
		if gr.tenants == nil {
			gr.tenants = map[string]*block{}
		}
		bl = &block{tenant: tenant, size: gr.s.blockSize}
		gr.tenants[tenant] = bl
		gr.order = append(gr.order, bl)
	}
	return bl, g.laneOf(tenant)
}

// laneOf returns the lane of a tenant.
func (g *gatherer) laneOf(tenant string) int {
	if tenant == "" {
		return g.lane
	}
	lanes := g.e.journal.Lanes()
	first := shards(lanes)
	if first == lanes {
		return g.lane // a journal of another weir
	}
	return first + int(xxhash.Sum64String(tenant)%uint64(lanes-first))
}

// commit writes the group to the journal. mu is held: blocks of a lane are
// written in the order of their lines.
func (g *gatherer) commit() {
	gr := g.group
	g.group = nil
	gr.err = errStopping // for who waits, should Append panic
	defer close(gr.done)
	for _, bl := range append(gr.order, &gr.own) {
		if bl.lines > 0 {
			gr.blocks = append(gr.blocks, bl.close(g.laneOf(bl.tenant)))
		}
	}
	putBuffer(gr.own.buf) // those of tenants may be many, and small
	gr.own.buf, gr.tenants, gr.order = nil, nil, nil
	gr.err = g.e.journal.Append(gr.blocks...)
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

// grouped is the rows of a batch by stream.
type grouped struct {
	runs []run
	next []int32                 // row by row, the next of its stream; -1 for none
	at   map[*batch.Stream]int32 // runs, where there are several
}

// run is the rows of one stream.
type run struct {
	stream      *batch.Stream
	first, last int32
	n           int
}

// of groups the rows of a batch: streams in the order of their first rows.
func (r *grouped) of(b *batch.Logs) {
	n := b.Len()
	if cap(r.next) < n {
		r.next = make([]int32, n)
	}
	r.next = r.next[:n]
	var last *batch.Stream
	var current *run
	for i, s := range b.Stream {
		r.next[i] = -1
		if s == last {
			r.next[current.last] = int32(i)
			current.last = int32(i)
			current.n++
			continue
		}
		if r.at == nil {
			r.at = map[*batch.Stream]int32{}
		}
		k, ok := r.at[s]
		if ok {
			r.next[r.runs[k].last] = int32(i)
		} else {
			k = int32(len(r.runs))
			r.at[s] = k
			r.runs = append(r.runs, run{stream: s, first: int32(i)})
		}
		last, current = s, &r.runs[k]
		current.last = int32(i)
		current.n++
	}
}

// forget lets go of the batch.
func (r *grouped) forget() {
	clear(r.runs)
	clear(r.at)
	r.runs = r.runs[:0]
}
