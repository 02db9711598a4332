package write

import (
	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

const (
	// maxGather is how many bytes of lines a group has when it is written.
	maxGather = 128 << 10
	// enough is how many a batch has that is written at once: its source has
	// more where that came from, and waits.
	enough = 32 << 10
)

// A journal has shards for lines without a tenant of their own, of which each
// belongs to some sources, and those for the others, of which each belongs to
// some tenants: who is not let in, or not so much, holds up nobody but them.
const (
	minShards    = 8
	maxShards    = 32
	tenantShards = 24
)

// shards returns how many shards a new journal gets.
func (q *Queue) shards() int { return min(max(q.MinShards, minShards), maxShards) + tenantShards }

// sourceShards returns how many of a journal's shards belong to sources: the first.
func sourceShards(shards int) int { return max(shards-tenantShards, 1) }

// shards spreads sources over gatherers.
type shards struct {
	gatherers []*gatherer
}

func newShards(e *endpoint) *shards {
	l := &shards{}
	for shard := range sourceShards(e.Journal.Shards()) {
		l.gatherers = append(l.gatherers, newGatherer(e, shard))
	}
	return l
}

// add gathers a batch and returns when it is written.
func (l *shards) add(s *settings, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	g := l.gatherers[b.Source%uint64(len(l.gatherers))]
	gr, skipped := g.place(s, b)
	if gr != nil {
		if err := gr.Wait(); err != nil {
			return err
		}
	}
	for reason, n := range skipped {
		g.e.Drop(reason, n)
	}
	return nil
}

// gatherer joins the batches of some sources into blocks and the blocks into
// groups.
type gatherer struct {
	outbox.Gatherer[*group]
	e     *endpoint
	shard int
	rows  grouped
}

// group is lines that wait for their journal write. All of it is gathered under
// the same settings.
type group struct {
	outbox.Group
	s       *settings
	own     block // for the endpoint's tenant
	tenants map[string]*block
	order   []*block // of tenants, in the order they came
	blocks  []journal.Block
	size    int // bytes of streams
}

func newGatherer(e *endpoint, shard int) *gatherer {
	g := &gatherer{e: e, shard: shard}
	g.Init(e.Remote, outbox.Hooks[*group]{Close: g.close, Written: g.written})
	return g
}

// place returns the group that the batch waits for, nil when nothing of it is
// to be sent, and how many lines are not, by reason.
func (g *gatherer) place(s *settings, b *batch.Logs) (_ *group, skipped map[string]int) {
	g.Lock()
	defer g.Unlock()
	if g.Open != nil && g.Open.s != s {
		g.Commit()
	}
	opened := g.Open == nil
	if opened {
		g.Begin(&group{s: s, own: block{size: s.blockSize}}, outbox.GatherFor)
	}
	gr := g.Open
	before := gr.size
	skipped = g.addRows(gr, b)
	switch {
	case gr.size == before:
		if opened {
			g.Open = nil // nobody waits for it
		}
		return nil, skipped
	case gr.size >= s.gather || gr.size-before >= enough || g.Stopping:
		g.Commit()
	case opened:
		g.Kick()
	}
	return gr, skipped
}

// addRows puts the rows of a batch into a group, stream after stream.
func (g *gatherer) addRows(gr *group, b *batch.Logs) (skipped map[string]int) {
	s := gr.s
	g.rows.groupRows(b)
	defer g.rows.forget()
	for _, run := range g.rows.runs {
		what := s.streams.sent(run.stream)
		reason := ""
		if !outbox.ValidValue(what.tenant) {
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
		bl, shard := gr.block(g, what.tenant)
		for row := run.first; row >= 0; {
			before := len(bl.buf)
			row = bl.add(what.labels, b, row, g.rows.next)
			gr.size += len(bl.buf) - before
			if row >= 0 {
				gr.blocks = append(gr.blocks, bl.close(shard))
			}
		}
	}
	return skipped
}

// block returns the open block of a tenant, and its shard.
func (gr *group) block(g *gatherer, tenant string) (*block, int) {
	if tenant == "" {
		if gr.own.buf == nil {
			gr.own.buf = getBuffer(0)
		}
		return &gr.own, g.shard
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
	return bl, g.shardOf(tenant)
}

// shardOf returns the shard of a tenant.
func (g *gatherer) shardOf(tenant string) int {
	if tenant == "" {
		return g.shard
	}
	shards := g.e.Journal.Shards()
	first := sourceShards(shards)
	if first == shards {
		return g.shard // a journal of another weir
	}
	return first + int(xxhash.Sum64String(tenant)%uint64(shards-first))
}

// close returns the blocks of a group.
func (g *gatherer) close(gr *group) []journal.Block {
	for _, bl := range append(gr.order, &gr.own) {
		if bl.lines > 0 {
			gr.blocks = append(gr.blocks, bl.close(g.shardOf(bl.tenant)))
		}
	}
	putBuffer(gr.own.buf) // those of tenants may be many, and small
	gr.own.buf, gr.tenants, gr.order = nil, nil, nil
	return gr.blocks
}

// written ends a group, which may not be in the journal.
func (g *gatherer) written(gr *group, _ error) {
	for i := range gr.blocks {
		putBuffer(gr.blocks[i].Payload)
	}
	gr.blocks = nil
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

// groupRows groups the rows of a batch: streams in the order of their first rows.
func (r *grouped) groupRows(b *batch.Logs) {
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
