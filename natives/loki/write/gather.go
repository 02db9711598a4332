package write

import (
	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

const (
	// maxGather is the size in bytes of the lines at which a group is written.
	maxGather = 128 << 10
	// enough is the size of a batch that is written immediately: its source has
	// more data and waits.
	enough = 32 << 10
)

// A journal has shards for lines without their own tenant, each of which belongs
// to some sources, and shards for the other lines, each of which belongs to some
// tenants. A tenant that is refused or rate-limited only delays the tenants in
// the same shard.
const (
	minShards    = 8
	maxShards    = 32
	tenantShards = 24
)

// shards returns the number of shards of a new journal.
func (q *Queue) shards() int { return min(max(q.MinShards, minShards), maxShards) + tenantShards }

// sourceShards returns the number of shards that belong to sources. They are the
// first ones.
func sourceShards(shards int) int { return max(shards-tenantShards, 1) }

// shards distributes sources over gatherers.
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

// gatherer collects the batches of some sources into blocks, and blocks into
// groups.
type gatherer struct {
	outbox.Gatherer[*group]
	e     *endpoint
	shard int
	rows  grouped
}

// group is lines that are written to the journal together. All of them were
// gathered under the same settings.
type group struct {
	outbox.Group
	s       *settings
	own     block // for the tenant of the endpoint
	tenants map[string]*block
	order   []*block // the blocks of tenants, in order of their first lines
	blocks  []journal.Block
	size    int // size of the streams in bytes
}

func newGatherer(e *endpoint, shard int) *gatherer {
	g := &gatherer{e: e, shard: shard}
	g.Init(e.Remote, outbox.Hooks[*group]{Close: g.close, Written: g.written})
	return g
}

// place adds a batch to a group and returns the group, or nil if none of its
// lines are sent. skipped is the number of lines that are not sent, by reason.
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

// addRows adds the rows of a batch to a group, stream by stream.
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

// block returns the open block of a tenant and its shard.
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
		return g.shard // the journal was created by another version of weir
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
	putBuffer(gr.own.buf) // blocks of tenants may be numerous and small
	gr.own.buf, gr.tenants, gr.order = nil, nil, nil
	return gr.blocks
}

// written completes a group. If there was an error, the group is not in the
// journal.
func (g *gatherer) written(gr *group, _ error) {
	for i := range gr.blocks {
		putBuffer(gr.blocks[i].Payload)
	}
	gr.blocks = nil
}

// grouped contains the rows of a batch, grouped by stream.
type grouped struct {
	runs []run
	next []int32                 // for each row, the next row of its stream, or -1
	at   map[*batch.Stream]int32 // index in runs, if there are several
}

// run contains the rows of one stream.
type run struct {
	stream      *batch.Stream
	first, last int32
	n           int
}

// groupRows groups the rows of a batch. Streams are in the order of their first
// rows.
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

// forget releases the references to the batch.
func (r *grouped) forget() {
	clear(r.runs)
	clear(r.at)
	r.runs = r.runs[:0]
}
