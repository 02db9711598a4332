package view

import (
	"slices"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// A script mostly does the same to every batch of a source, and what it does by
// labels alone ends the same while the source sends the same column of series.
// So a Cache remembers by column where such operations led: a shape, and
// from it by the next operation to the next shape. An operation that is known
// costs a look-up, whatever the number of rows, and Apply makes a batch with the
// very column of series of the batch before.

// shape is which series the rows of a column have, and which rows are dropped,
// as operations left it that look at labels alone. The first one, of its root,
// is the column itself.
type shape struct {
	series  []*batch.Series // of all rows; never written to
	flags   []flags         // empty when no row is dropped; never written to
	dropped int
	steps   []step

	change *batch.Change // from the column, nil until Apply needs it
	// collided are the collisions of what Apply makes, when all rows have the
	// same time; nil until they were looked for.
	collided *collision
}

// step is where an operation leads, or what an expression says of the rows.
type step struct {
	op   op
	to   *shape
	yes  batch.Rows // that match whatever the sample is
	open openRows
}

// openRows are rows whose samples must be asked.
type openRows struct {
	batch.Rows
	failed bool // the label part of some failed
}

func (o *openRows) add(row int, said expr.Verdict) {
	o.Add(row)
	o.failed = o.failed || said == expr.Open
}

func (o *openRows) reset() {
	o.Reset()
	o.failed = false
}

func (o *openRows) clone() openRows { return openRows{o.Clone(), o.failed} }

// op is an operation: the number of what it remembers of series, and what it
// does by that.
type op struct {
	number uint64 // 0 for what is remembered nowhere
	does   byte
}

// seriesOp is RunSeries. Others have the numbers that Cache.ops gives.
var seriesOp = op{1, 's'}

// root is the shape that a column begins with. Who uses it or what it leads to
// holds its lock: calls for one Origin come one after the other, but who knows.
type root struct {
	mu sync.Mutex
	shape
}

// maxSteps bounds the operations that are remembered from one shape; a script
// may make up expressions anew in each batch.
const maxSteps = 64

func (s *shape) step(o op) *step {
	for i := range s.steps {
		if s.steps[i].op == o {
			return &s.steps[i]
		}
	}
	return nil
}

func (s *shape) addStep(st step) {
	if len(s.steps) >= maxSteps {
		clear(s.steps)
		s.steps = s.steps[:0]
	}
	s.steps = append(s.steps, st)
}

// root returns the root of a column, locked; nil when it is not known or
// in use. A column that comes for the first time is not worth remembering yet:
// sources that never send one twice should not pay for those that do.
func (g *Cache) root(of batch.Origin, column []*batch.Series) *root {
	r, at, ok := g.roots.Get(of, column)
	if !ok {
		g.roots.Put(of, column, &root{shape: shape{series: column}}, at)
		return nil
	}
	if !r.mu.TryLock() {
		return nil
	}
	return r
}

// currentShape returns the shape that the rows have, nil when it is not known or one of
// them was edited by itself.
func (m *Window) currentShape() *shape {
	if m.shape == nil && !m.loose {
		if m.root = m.cache.root(m.origin, m.column); m.root == nil {
			m.loose = true
		} else {
			m.shape = &m.root.shape
		}
	}
	return m.shape
}

// forgetShape says that a row is edited by itself.
func (m *Window) forgetShape() { m.shape, m.loose = nil, true }

// releaseRoot gives up the root.
func (m *Window) releaseRoot() {
	if m.root != nil {
		m.root.mu.Unlock()
	}
	m.root, m.shape, m.loose = nil, nil, false
}

// setShape makes a shape that of the rows.
func (m *Window) setShape(s *shape) {
	if s == m.shape {
		return
	}
	m.shape = s
	m.series.reset(s.series)
	m.flags, m.dropped = append(m.flags[:0], s.flags...), s.dropped
}

// done ends an operation that began at a shape, nil if m is loose, and looked at
// every row. It remembers where that led if all of it is to last.
func (m *Window) done(from *shape, o op, lasting bool) {
	switch {
	case m.loose:
		return
	case !lasting || o.number == 0:
		m.forgetShape()
		return
	}
	to := m.asShape(from)
	from.addStep(step{op: o, to: to})
	m.shape = to
}

// asShape returns the rows as they are as a shape, from itself if they are as
// there.
func (m *Window) asShape(from *shape) *shape {
	m.series.revert(m.column, slices.Equal[[]*batch.Series]) // back to where it began
	m.series.own = false                                     // the column is the shape's now
	if batch.SameColumn(m.series.rows, from.series) && m.dropped == from.dropped {
		return from
	}
	to := &shape{series: m.series.rows, flags: from.flags, dropped: m.dropped}
	if m.dropped != from.dropped {
		to.flags = slices.Clone(m.flags)
	}
	return to
}

// changed returns the change of a column that led to the shape.
func (s *shape) changed(column []*batch.Series) *batch.Change {
	if s.change == nil {
		become := slices.Clone(s.series)
		for i, f := range s.flags {
			if f&isDropped != 0 {
				become[i] = nil
			}
		}
		s.change = batch.NewChange(column, become)
	}
	return s.change
}

// collisions returns how many rows of out, which has the shape, collide, and one
// of their series.
func (g *Cache) collisionsOf(s *shape, out *batch.Metrics) (int, *batch.Series) {
	if s == nil || !sameTime(out.T) {
		return g.collisions.find(out)
	}
	if s.collided == nil {
		c := new(collision)
		c.n, c.at = g.collisions.find(out)
		s.collided = c
	}
	return s.collided.n, s.collided.at
}

func sameTime(ts []int64) bool {
	for _, t := range ts {
		if t != ts[0] {
			return false
		}
	}
	return true
}

// Remembered returns what RunSeries and Apply would make of b, if that is known
// without asking anybody.
func (g *Cache) Remembered(b *batch.Metrics) (r Result[*batch.Metrics], ok bool) {
	root, _, ok := g.roots.Get(b.Origin(), b.Series)
	if !ok || !root.mu.TryLock() {
		return r, false
	}
	defer root.mu.Unlock()
	st := root.step(seriesOp)
	if st == nil {
		return r, false
	}
	change := st.to.changed(b.Series)
	r = Result[*batch.Metrics]{Batch: change.Apply(b), Dropped: change.Dropped()}
	if len(r.Batch.Series) > 0 && !batch.SameColumn(st.to.series, b.Series) {
		r.Collisions, r.Collision = g.collisionsOf(st.to, r.Batch)
	}
	return r, true
}
