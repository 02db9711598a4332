package process

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// entry is a row that a stage keeps beyond the call. Its values and line may be
// parts of a batch's memory.
type entry struct {
	names          []string // of the slots
	origin, stream *batch.Stream
	t              int64
	line           string
	meta           []batch.Label
	values         []value
	extra          map[string]value
}

// entry returns a row as it is now.
func (p *pass) entry(row int) entry {
	e := entry{names: p.pl.names, origin: p.origin[row], stream: p.stream[row], t: p.t[row], line: p.line[row], meta: p.metaOf(row)}
	for _, s := range p.slots {
		e.values = append(e.values, s[row])
	}
	if p.extra != nil {
		e.extra = p.extra[row]
	}
	return e
}

// add puts a row that was kept after the others of the columns and returns its
// number; it is for the stage to put that into p.rows.
func (p *pass) add(e *entry) (row int) {
	row = len(p.line)
	if !p.own.stream {
		p.stream, p.own.stream = slices.Clone(p.stream), true
	}
	if !p.own.t {
		p.t, p.own.t = slices.Clone(p.t), true
	}
	if !p.own.line {
		p.line, p.own.line = slices.Clone(p.line), true
	}
	if !p.own.origin {
		p.origin, p.own.origin = slices.Clone(p.origin), true
	}
	if p.meta != nil || len(e.meta) > 0 {
		p.ownMeta()
		p.meta = append(p.meta, e.meta)
	}
	p.stream, p.t, p.line, p.origin = append(p.stream, e.stream), append(p.t, e.t), append(p.line, e.line), append(p.origin, e.origin)
	for i := range p.slots {
		p.slots[i] = append(p.slots[i], e.valueOf(p.pl.names, i))
	}
	if p.extra != nil {
		p.extra = append(p.extra, maps.Clone(e.extra)) // an entry may be added more than once
	}
	return row
}

// valueOf returns the value of a slot of names, which a reload may have numbered
// otherwise.
func (e *entry) valueOf(names []string, slot int) value {
	if slot < len(e.names) && e.names[slot] == names[slot] {
		return e.values[slot]
	}
	if i := slices.Index(e.names, names[slot]); i >= 0 {
		return e.values[i]
	}
	return value{}
}

// ownMemory makes nothing of the entry a part of a batch's memory but its line.
func (e *entry) ownMemory() {
	for i := range e.values {
		e.values[i].text = strings.Clone(e.values[i].text)
	}
	e.meta = slices.Clone(e.meta) // which others have too
	for i, l := range e.meta {
		e.meta[i] = batch.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)}
	}
	e.extra = maps.Clone(e.extra)
	for name, v := range e.extra {
		e.extra[strings.Clone(name)] = value{v.kind, strings.Clone(v.text)}
	}
}

// group is what a stage keeps of the lines of one stream of one Source. It is
// used by whoever has the turn on the Source; wait is guarded by groups.mu.
type group struct {
	groupKey
	way     uint64
	stream  *batch.Stream
	first   entry // what the group's line will be but for its text; kept after that
	text    []byte
	lines   int
	counted int // bytes of text, in groups.size
	holds   []*batch.Hold
	// touched says that lines came in this pass.
	touched bool

	wait int64 // until when lines are waited for, Unix ns; never for an empty group
	idle int64 // since when nothing was done, Unix ns
}

type groupKey struct{ source, stream uint64 }

// forgetAfter is how long nothing must come for an empty group until it is
// forgotten.
const forgetAfter = 15 * time.Minute

// maxSpare is how much memory for text a group without lines keeps.
const maxSpare = 64 << 10

// groups are what one stage keeps, by Source and stream. They go from instance
// to instance while the stage stays the same.
type groups struct {
	mu      sync.Mutex
	clock   clock.Clock
	mem     *memory
	finish  func(g *group) entry // makes the row of a group that is to leave
	pl      *pipeline            // through which lines leave
	after   *link                // what they have before them
	retired bool                 // the stage is no more: lines leave at once
	size    int                  // of the text of all
	crowded bool                 // size was more than maxKept and is not well below it again
	by      map[groupKey]*group
}

// groups returns what the stage that is being made keeps: what an equal one had,
// if key is the same. finish makes the row of a group that is to leave.
func (c *compiler) groups(key any, finish func(g *group) entry) *groups {
	g := keepState(c, key, func() *groups { return &groups{by: map[groupKey]*group{}} })
	pl, after := c.pl, c.after
	pl.holds = true
	pl.groups = append(pl.groups, g)
	pl.takes = append(pl.takes, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.clock, g.mem, g.finish = c.clock, c.mem, finish
		g.pl, g.after, g.retired = pl, after, false
	})
	return g
}

// isTakenOver reports whether a pipeline goes on with the groups.
func (gs *groups) isTakenOver(pl *pipeline) bool { return slices.Contains(pl.groups, gs) }

// retire makes all lines leave, now and in future, and reports whether there are
// none.
func (gs *groups) retire() (empty bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.retired = true
	return len(gs.by) == 0
}

// isDone reports whether the groups are of no use any more.
func (gs *groups) isDone() bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.retired && len(gs.by) == 0
}

// groupOf returns the group of a row, nil if there is none and create is false.
func (gs *groups) groupOf(p *pass, row int, create bool) *group {
	s := p.stream[row]
	key := groupKey{p.in.Source, s.Hash()}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.by[key]
	if g == nil && create {
		g = &group{groupKey: key, way: p.in.Way, stream: s, wait: never}
		gs.by[key] = g
	}
	return g
}

// maxBlock is how long the text of a group may get, and maxKept that of all groups
// of a stage: the first is what Loki would refuse anyway, the second less than what
// takes the memory of all.
const (
	maxBlock = 16 << 20
	maxKept  = 64 << 20
)

// grown says that the text of a group has grown. It returns how many groups leave
// as they are because of that, 0 for none; if any does, that one has to leave in the
// pass. When all have too much together, the others leave soon, and until they have,
// whatever grows leaves: its source waits with it.
func (gs *groups) grown(p *pass, g *group) (leaving int) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.size += len(g.text) - g.counted
	g.counted = len(g.text)
	full := gs.size > p.pl.mem.maxKept
	if full && !gs.crowded {
		gs.crowded = true
		for _, other := range gs.by {
			if other != g && other.wait != never && other.wait != 0 {
				other.wait = 0
				leaving++
			}
		}
		gs.mem.wakeAt(0)
	}
	if full || len(g.text) >= maxBlock {
		leaving++
	}
	return leaving
}

// completeGroup puts the row of a group that is complete into the pass, behind those in
// rows, which it returns.
func (gs *groups) completeGroup(p *pass, g *group, rows []int) []int {
	gs.mu.Lock()
	finish := gs.finish
	if gs.size -= g.counted; gs.size <= p.pl.mem.maxKept/2 {
		gs.crowded = false
	}
	gs.mu.Unlock()
	e := finish(g)
	if g.lines, g.counted, g.text, g.touched = 0, 0, g.text[:0], false; cap(g.text) > maxSpare {
		g.text = nil
	}
	for _, h := range g.holds {
		if p.in.Ack == nil {
			p.free = append(p.free, h)
			continue
		}
		p.in.Ack.Adopt(h)
	}
	g.holds = nil
	gs.setDeadline(g, never)
	return append(rows, p.add(&e))
}

// setDeadline makes the lines of a group wait until a time, Unix ns.
func (gs *groups) setDeadline(g *group, at int64) {
	gs.mu.Lock()
	if gs.retired && at != never {
		at = 0
	}
	g.wait, g.idle = at, gs.clock.Now().UnixNano()
	mem, retired := gs.mem, gs.retired
	gs.mu.Unlock()
	if at == never {
		return
	}
	if retired {
		mem.watch(gs)
	}
	mem.wakeAt(at)
}

// hold says at the end of a run which groups have lines of the pass.
func (gs *groups) hold(p *pass, touched []*group) {
	for _, g := range touched {
		if !g.touched {
			continue
		}
		g.touched = false
		if h := p.in.Ack.Hold(func() { gs.flushSoon(g) }); h != nil {
			g.holds = append(g.holds, h)
		}
	}
}

// flushSoon makes a group leave soon, although more lines may come. It may be
// empty by then: its lines have left, and whoever took them over keeps them.
func (gs *groups) flushSoon(g *group) {
	gs.mu.Lock()
	if g.wait != never {
		g.wait = min(g.wait, 0)
	}
	mem := gs.mem
	gs.mu.Unlock()
	mem.wakeAt(0)
}

// findDue returns the Sources of the groups whose time has come, or of all that have
// lines, and of those that can be forgotten, and when that of the next will have.
func (gs *groups) findDue(now time.Time, all bool) (sources []uint64, next int64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	next = never
	for key, g := range gs.by {
		switch {
		case gs.isDue(g, now, all) || gs.isOver(g, now):
			if !slices.Contains(sources, key.source) {
				sources = append(sources, key.source)
			}
		default:
			next = min(next, g.wait)
		}
	}
	return sources, next
}

// isDue reports whether the lines of a group are to be sent; mu is held.
func (gs *groups) isDue(g *group, now time.Time, all bool) bool {
	return g.wait != never && (all || gs.retired || g.wait <= now.UnixNano())
}

// isOver reports whether a group can be forgotten; mu is held.
func (gs *groups) isOver(g *group, now time.Time) bool {
	return g.wait == never && (gs.retired || now.UnixNano()-g.idle > int64(forgetAfter))
}

// send sends the groups of a Source, on which it is the caller's turn, whose time
// has come. What cannot be sent before ctx ends is lost to this process: its
// acknowledgements say so.
func (gs *groups) send(ctx context.Context, s *flow.Sender, source uint64, now time.Time, all bool) {
	gs.mu.Lock()
	var ready []*group
	for key, g := range gs.by {
		switch {
		case key.source != source:
		case gs.isDue(g, now, all):
			ready = append(ready, g)
		case gs.isOver(g, now):
			delete(gs.by, key)
		}
	}
	pl, after, clk, mem := gs.pl, gs.after, gs.clock, gs.mem
	gs.mu.Unlock()
	// In the order in which their first lines came.
	slices.SortFunc(ready, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.first.t, b.first.t), cmp.Compare(a.groupKey.stream, b.groupKey.stream))
	})
	for len(ready) > 0 {
		n := 1
		for n < len(ready) && ready[n].way == ready[0].way {
			n++
		}
		gs.sendOne(ctx, clk, mem, s, pl, after, ready[:n])
		ready = ready[n:]
	}
}

func (gs *groups) sendOne(ctx context.Context, clk clock.Clock, mem *memory, s *flow.Sender, pl *pipeline, after *link, ready []*group) {
	var holds []*batch.Hold
	ack := batch.NewAck(func() {
		for _, h := range holds {
			h.Release()
		}
	})
	p := pl.begin(ctx, &batch.Logs{Source: ready[0].source, Way: ready[0].way, Ack: ack})
	for _, g := range ready {
		holds = append(holds, g.holds...)
		g.holds = nil
		p.rows = gs.completeGroup(p, g, p.rows)
	}
	after.run(ctx, p)
	out := p.finish()
	p.release()
	whole := func(ctx context.Context) error { return s.SendLogs(ctx, out) }
	mem.deliver(ctx, clk, unsent{out.Source, whole, whole, ack})
}
