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

// entry is a row that a stage keeps after the call. Its values and line may refer
// to the memory of a batch.
type entry struct {
	names          []string // of the slots
	origin, stream *batch.Stream
	t              int64
	line           string
	meta           []batch.Label
	values         []value
	extra          map[string]value
}

// entry returns a copy of a row.
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

// add appends a kept row to the columns and returns its number. The stage must
// add that number to p.rows.
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

// valueOf returns the value of a slot. names are the slots of the current
// pipeline, which may be numbered differently after a reload.
func (e *entry) valueOf(names []string, slot int) value {
	if slot < len(e.names) && e.names[slot] == names[slot] {
		return e.values[slot]
	}
	if i := slices.Index(e.names, names[slot]); i >= 0 {
		return e.values[i]
	}
	return value{}
}

// ownMemory copies everything except the line, so that the entry does not retain
// the memory of a batch.
func (e *entry) ownMemory() {
	for i := range e.values {
		e.values[i].text = strings.Clone(e.values[i].text)
	}
	e.meta = slices.Clone(e.meta) // the slice is shared
	for i, l := range e.meta {
		e.meta[i] = batch.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)}
	}
	e.extra = maps.Clone(e.extra)
	for name, v := range e.extra {
		e.extra[strings.Clone(name)] = value{v.kind, strings.Clone(v.text)}
	}
}

// group holds the lines of one stream of one Source that a stage keeps. It is
// used by the goroutine that has the turn on the Source; wait is guarded by
// groups.mu.
type group struct {
	groupKey
	way     uint64
	stream  *batch.Stream
	first   entry // the joined line except its text; kept when the group leaves
	text    []byte
	lines   int
	counted int // the bytes of text that are included in groups.size
	holds   []*batch.Hold
	// touched is true if lines were added in this pass.
	touched bool

	wait int64 // the deadline for more lines, Unix ns; never for an empty group
	idle int64 // the time of the last change, Unix ns
}

type groupKey struct{ source, stream uint64 }

// forgetAfter is the time after which an empty group without new lines is
// removed.
const forgetAfter = 15 * time.Minute

// maxSpare is the maximum size of the text buffer that a group without lines
// retains.
const maxSpare = 64 << 10

// groups are the groups of one stage, by Source and stream. They are passed on to
// the next component as long as the stage stays the same.
type groups struct {
	mu      sync.Mutex
	clock   clock.Clock
	mem     *memory
	finish  func(g *group) entry // creates the row of a group that is sent
	pl      *pipeline            // processes the rows that are sent
	after   *link                // the stages that these rows still have to pass
	retired bool                 // the stage was removed: lines are sent immediately
	size    int                  // bytes of text of all groups
	crowded bool                 // size exceeded maxKept and has not fallen to half of it since
	by      map[groupKey]*group
}

// groups returns the groups of the stage that is being compiled. It takes over
// those of an equal stage if key is equal. finish creates the row of a group that
// is sent.
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

// isTakenOver reports whether a pipeline continues to use the groups.
func (gs *groups) isTakenOver(pl *pipeline) bool { return slices.Contains(pl.groups, gs) }

// retire makes all lines leave immediately, now and in future, and reports
// whether there are no groups.
func (gs *groups) retire() (empty bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.retired = true
	return len(gs.by) == 0
}

// isDone reports whether the groups can be removed.
func (gs *groups) isDone() bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.retired && len(gs.by) == 0
}

// groupOf returns the group of a row. If it does not exist and create is false,
// groupOf returns nil.
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

// maxBlock is the maximum size of the text of a group; Loki would refuse longer
// lines anyway. maxKept is the maximum for all groups of a stage together and
// protects the memory of the process.
const (
	maxBlock = 16 << 20
	maxKept  = 64 << 20
)

// grown records that the text of a group has grown. It returns the number of
// groups that have to leave incomplete because of the limits. If it is not 0, the
// stage must complete g in this pass. If all groups together exceed maxKept, the
// other groups leave soon; until they have left, each group that grows leaves as
// well, which makes its source wait.
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

// completeGroup adds the row of a complete group to the pass and appends its
// number to rows, which it returns.
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

// setDeadline sets the time until which a group waits for lines, Unix ns.
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

// hold is called at the end of a run and keeps the batch unacknowledged for each
// touched group.
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

// flushSoon makes a group leave soon without waiting for more lines. The group
// may be empty: its lines may have left in a batch that is not acknowledged yet.
func (gs *groups) flushSoon(g *group) {
	gs.mu.Lock()
	if g.wait != never {
		g.wait = min(g.wait, 0)
	}
	mem := gs.mem
	gs.mu.Unlock()
	mem.wakeAt(0)
}

// findDue returns the Sources of groups that are due and of groups that can be
// removed, and the next deadline. If all is true, every group with lines is due.
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

// isDue reports whether the lines of a group are to be sent. The caller holds mu.
func (gs *groups) isDue(g *group, now time.Time, all bool) bool {
	return g.wait != never && (all || gs.retired || g.wait <= now.UnixNano())
}

// isOver reports whether a group can be removed. The caller holds mu.
func (gs *groups) isOver(g *group, now time.Time) bool {
	return g.wait == never && (gs.retired || now.UnixNano()-g.idle > int64(forgetAfter))
}

// send sends the groups of a Source that are due. The caller has the turn on the
// Source. Groups that cannot be sent before ctx ends are lost to this process;
// their lines stay unacknowledged.
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
	// In the order of their first lines.
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
