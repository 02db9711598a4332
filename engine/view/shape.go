package view

import (
	"slices"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// A script usually does the same to every batch of a source. Operations that
// depend on labels alone have the same result as long as the source sends the
// same column of series. Therefore, a Cache stores the result of such
// operations by column: a shape, and for each shape the next shape by the next
// operation. A known operation costs one look-up, however many rows there are,
// and Apply creates a batch with the same column of series as the previous
// batch.

// shape is the state of the rows of a column after operations that depend on
// labels alone: their series, and which rows are dropped. The first shape, in
// its root, is the column itself.
type shape struct {
	series  []*batch.Series // of all rows; immutable
	flags   []flags         // empty if no row is dropped; immutable
	dropped int
	steps   []step

	change *batch.Change // from the column, nil until Apply needs it
	// collided contains the collisions in the result of Apply if all rows have the
	// same time. It is nil until they were searched.
	collided *collision
}

// step is the result of an operation: the next shape, or the verdicts of an
// expression.
type step struct {
	op   op
	to   *shape
	yes  batch.Rows // rows that match whatever the sample is
	open openRows
}

// openRows are rows whose samples must be judged individually.
type openRows struct {
	batch.Rows
	failed bool // the label part failed for some rows
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

// op is an operation: the number of its cached results by series, and its code.
type op struct {
	number uint64 // 0 if it is not cached
	does   byte
}

// seriesOp is the op of RunSeries. Cache.ops assigns the numbers of the other
// operations.
var seriesOp = op{1, 's'}

// root is the first shape of a column. Its lock guards it and all shapes that
// follow from it. Calls for one Origin should come one after another, but this
// is not guaranteed.
type root struct {
	mu sync.Mutex
	shape
}

// maxSteps is the maximum number of operations that are cached per shape. A
// script may use new expressions for each batch.
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

// root returns the root of a column, locked, or nil if it is unknown or in use.
// A column is cached only when it comes for the second time, so that sources
// that never repeat a column do not pay for the cache.
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

// currentShape returns the shape of the rows, or nil if it is unknown or if a
// row was edited individually.
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

// forgetShape records that a row is edited individually.
func (m *Window) forgetShape() { m.shape, m.loose = nil, true }

// releaseRoot unlocks and releases the root.
func (m *Window) releaseRoot() {
	if m.root != nil {
		m.root.mu.Unlock()
	}
	m.root, m.shape, m.loose = nil, nil, false
}

// setShape sets the rows to a shape.
func (m *Window) setShape(s *shape) {
	if s == m.shape {
		return
	}
	m.shape = s
	m.series.reset(s.series)
	m.flags, m.dropped = append(m.flags[:0], s.flags...), s.dropped
}

// done ends an operation that started at the shape from, which is nil if m is
// loose, and processed every row. It caches the resulting shape if all of its
// handles are lasting.
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

// asShape returns the current rows as a shape. It returns from itself if they
// are equal.
func (m *Window) asShape(from *shape) *shape {
	m.series.revert(m.column, slices.Equal[[]*batch.Series]) // the rows may equal the original column again
	m.series.own = false                                     // the column now belongs to the shape
	if batch.SameColumn(m.series.rows, from.series) && m.dropped == from.dropped {
		return from
	}
	to := &shape{series: m.series.rows, flags: from.flags, dropped: m.dropped}
	if m.dropped != from.dropped {
		to.flags = slices.Clone(m.flags)
	}
	return to
}

// changed returns the change from the column to the shape.
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

// collisionsOf returns the number of rows of out, which has the shape s, that
// collide, and the series of one of them.
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

// Remembered returns the result of RunSeries and Apply for b, if it is known
// without calling the hook.
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
