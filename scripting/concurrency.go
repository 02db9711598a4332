package scripting

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// splitRows is how many records a part of a batch has in mode parallel: what
// an each does with as many takes about a millisecond, a hundred times what
// the splitting does.
const splitRows = 2000

// splitter makes parts of batches and one batch of what became of them.
type splitter struct {
	by     []string // label names; nil: any part will do
	shards int
	seed   maphash.Seed
	known  batch.ColumnMemo[*split]
}

// split is how a column of series is split: which rows go into which part.
type split struct {
	changes []*batch.Change
	shards  []int // of each part

	mu     sync.Mutex
	parts  [][]*batch.Series // the columns of what became of the parts last time
	joined []*batch.Series   // and the column that they made together
}

// part is a part of a batch.
type part struct {
	in    *batch.Metrics
	shard int // of the VM that it meets, in mode partition
}

// splitOf returns how a column that an Origin sent is split, nil when it is not.
func (s *splitter) splitOf(origin batch.Origin, column []*batch.Series) *split {
	if s.by == nil && len(column) < 2*splitRows {
		return nil
	}
	sp, at, ok := s.known.Get(origin, column)
	if !ok {
		sp = s.make(column)
		s.known.Put(origin, column, sp, at)
	}
	return sp
}

func (s *splitter) make(column []*batch.Series) *split {
	n := len(column)
	shard := func(row int) int { return row / splitRows }
	shards := (n + splitRows - 1) / splitRows
	if s.by != nil {
		shard, shards = func(row int) int { return s.shard(column[row]) }, s.shards
	}
	rows := make([]batch.Rows, shards)
	for i := range n {
		rows[shard(i)].Add(i)
	}
	sp := &split{}
	for l := range rows {
		if rows[l].Len() > 0 {
			sp.changes = append(sp.changes, batch.NewSelection(column, &rows[l]))
			sp.shards = append(sp.shards, l)
		}
	}
	return sp
}

// shard is which VM a series meets.
func (s *splitter) shard(series *batch.Series) int {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, name := range s.by {
		h.WriteString(series.Label(name))
		h.WriteByte(0xff) // no UTF-8 has it
	}
	return int(h.Sum64() % uint64(s.shards))
}

// partsOf returns the parts of b, each with a Way of its own, so that what is
// remembered of one column of an Origin is not taken for another's.
func (sp *split) partsOf(b *batch.Metrics) []part {
	parts := make([]part, len(sp.changes))
	for i, ch := range sp.changes {
		in := ch.Apply(b)
		if in != b {
			in.Way = b.Along(uint64(sp.shards[i]) + 1).Way
		}
		parts[i] = part{in, sp.shards[i]}
	}
	return parts
}

// join returns one batch of what became of the parts, one after the other: b
// itself when nothing did.
func (sp *split) join(b *batch.Metrics, parts []part, outs []*batch.Metrics) *batch.Metrics {
	same, rows := true, 0
	for i, o := range outs {
		same = same && o == parts[i].in
		rows += o.Len()
	}
	if same {
		return b
	}
	out := &batch.Metrics{
		Source: b.Source, Way: b.Way, Series: sp.column(outs, rows), T: make([]int64, 0, rows), V: make([]float64, 0, rows),
	}
	for _, o := range outs {
		out.AppendRest(o)
	}
	return out
}

// column returns the columns of series one after the other: the same slice as
// the last time when they are the same slices, so that whoever comes next knows
// it again.
func (sp *split) column(outs []*batch.Metrics, rows int) []*batch.Series {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	same := len(sp.parts) == len(outs)
	for i := 0; same && i < len(outs); i++ {
		same = batch.SameColumn(sp.parts[i], outs[i].Series)
	}
	if same {
		return sp.joined
	}
	sp.parts, sp.joined = make([][]*batch.Series, len(outs)), make([]*batch.Series, 0, rows)
	for i, o := range outs {
		sp.parts[i] = o.Series
		sp.joined = append(sp.joined, o.Series...)
	}
	return sp.joined
}

// sideBySide calls f with 0 to n-1, at most as many at once as may be, the last
// ones on the caller's goroutine, and returns the first error.
func sideBySide(n, atOnce int, f func(i int) error) error {
	var next atomic.Int64
	var first error
	var once sync.Once
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if err := f(i); err != nil {
				once.Do(func() { first = err })
				next.Store(int64(n))
			}
		}
	}
	var wg sync.WaitGroup
	for range min(n, atOnce) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return first
}

// errReplaced is what process returns when the batch is another component's.
var errReplaced = errors.New("another component has taken over")

// process returns what the hooks make of b. An error is errReplaced, that of
// getting a VM, or of run: what came of the parts before is lost.
func (c *Component) process(ctx context.Context, b *batch.Metrics) (result, error) {
	if !c.entrance.tryEnter() {
		return result{}, errReplaced
	}
	defer c.entrance.leave()
	if c.splitter != nil && c.script.def.Metrics { // a series hook knows no batches
		if sp := c.splitter.splitOf(b.Origin(), b.Series); sp != nil {
			return c.inParts(ctx, b, sp)
		}
	}
	out, ran, first, err := c.runOnVM(ctx, c.pool, b)
	c.ended(ctx, b.Source, ran, first, err)
	return out, err
}

// inParts returns what the hooks make of the parts of b.
func (c *Component) inParts(ctx context.Context, b *batch.Metrics, sp *split) (result, error) {
	parts := sp.partsOf(b)
	outs, err := c.eachPart(ctx, b.Source, len(parts), func(i int) (result, bool, *Error, error) {
		return c.runOnVM(ctx, c.poolOf(parts[i].shard), parts[i].in)
	})
	if err != nil {
		return result{}, err
	}
	if len(outs) == 1 {
		return outs[0], nil
	}
	return c.join(sp, b, parts, outs), nil
}

// eachPart runs one for each of n parts of a batch, side by side, and reports
// how they ended.
func (c *Component) eachPart(ctx context.Context, source uint64, n int, one func(i int) (out result, ran bool, first *Error, err error)) ([]result, error) {
	var mu sync.Mutex
	anyRan, failed := false, (*Error)(nil)
	outs := make([]result, n)
	err := sideBySide(n, workers(), func(i int) (err error) {
		var ran bool
		var first *Error
		outs[i], ran, first, err = one(i)
		mu.Lock()
		defer mu.Unlock()
		anyRan = anyRan || ran
		failed = cmp.Or(failed, first)
		return err
	})
	c.ended(ctx, source, anyRan, failed, err)
	return outs, err
}

// poolOf is where a part of a shard meets its VM.
func (c *Component) poolOf(shard int) *pool {
	if c.shards != nil {
		return c.shards[shard]
	}
	return c.pool
}

// ended reports how the hooks ended for a source; a replay is none, of what is
// held it is not known yet, and a piece that works says nothing.
func (c *Component) ended(ctx context.Context, source uint64, ran bool, first *Error, err error) {
	_, held := err.(*heldError)
	switch {
	case !ran || held || isReplay(ctx):
	case first != nil:
		on, _ := c.onError(ctx)
		if on == OnErrorHold { // it was not all of the batch
			on = OnErrorQuarantine
		}
		c.report.reportFailure(source, first, onErrorSays[on], failureAge)
	case !isPiece(ctx):
		c.report.done(source, nil)
	}
}

// runOnVM runs the hooks on a batch or a part of one, on a VM of p. first is the
// first error of the script; ran says whether there was a VM to have one.
func (c *Component) runOnVM(ctx context.Context, p *pool, b *batch.Metrics) (out result, ran bool, first *Error, err error) {
	w, first, err := c.borrow(ctx, p)
	if err != nil {
		return result{}, first != nil, first, err
	}
	out, first, err = c.run(ctx, w, b)
	c.putBack(p, w)
	if e, ok := err.(*heldError); ok && c.isolates(ctx) {
		out, first, err = isolate(ctx, c, c.piecesOf(b), e, func(ctx context.Context, part *batch.Metrics) (result, bool, *Error, error) {
			return c.runOnVM(ctx, p, part)
		})
	}
	return out, true, first, err
}

// borrow gets a VM of p for a batch. first is the error of making one.
func (c *Component) borrow(ctx context.Context, p *pool) (w *worker, first *Error, err error) {
	w, err = p.get(ctx)
	if e, ok := errors.AsType[*Error](err); ok { // else ctx ended
		c.report.errored(e)
		first = e
	}
	return w, first, err
}

// putBack gives a worker back to its pool.
func (c *Component) putBack(p *pool, w *worker) {
	if p.put(w) {
		c.mem.metrics.discarded.Inc()
	}
	c.mem.metrics.vms.Set(float64(c.vms()))
}

// openPools makes the pools of the block's mode.
func (c *Component) openPools(newWorker func() (*worker, error)) {
	c.pool = newPool(workers(), maxWaiting, newWorker)
	switch c.block.Concurrency {
	case ConcurrencySingle:
		c.pool = newPool(1, 0, newWorker)
	case ConcurrencyParallel:
		c.splitter = &splitter{}
	case ConcurrencyPartition:
		c.splitter = &splitter{by: c.block.By, shards: workers(), seed: maphash.MakeSeed()}
		c.shards = make([]*pool, workers())
		for i := range c.shards {
			c.shards[i] = newPool(1, 0, newWorker)
		}
	}
	c.pools = append(c.shards, c.pool)
}

// vms is how many VMs there are.
func (c *Component) vms() (n int64) {
	for _, p := range c.pools {
		n += p.count.Load()
	}
	return n
}
