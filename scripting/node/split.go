package node

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// splitRows is the number of records in a part of a batch in mode parallel. An
// each takes about a millisecond for them, a hundred times as long as
// splitting.
const splitRows = 2000

// sharding specifies how the batches of a node are split.
type sharding struct {
	shards  int
	shardOf func(*batch.Series) int        // returns the shard of a series; nil in mode parallel
	known   batch.ColumnMemo[*columnSplit] // cached splits of columns of samples
}

// partitionBy returns the sharding of mode partition: the values of labels select
// the VM of a series.
func partitionBy(labels []string, shards int) *sharding {
	seed := maphash.MakeSeed()
	return &sharding{shards: shards, shardOf: func(series *batch.Series) int {
		return int(maphash.Bytes(seed, appendValues(nil, series, labels)) % uint64(shards))
	}}
}

// appendValues appends the values of labels to dst, each with an end that no other
// value has.
func appendValues(dst []byte, series *batch.Series, labels []string) []byte {
	for _, name := range labels {
		dst = append(append(dst, series.Label(name)...), 0xff) // no UTF-8 has it
	}
	return dst
}

// split is a batch in parts.
type split[B records] struct {
	parts  []B
	shards []int // of each part
	// join joins the results of the parts that are sent to forward_to only. nil:
	// they are joined like those for other outputs.
	join func(outs []B) B
}

// split is the second stage. It returns the parts of b, or nil if it is not
// split. Splitting is only useful for a hook for batches.
func (p *pipeline[B]) split(b B, t terms) *split[B] {
	if p.c.sharding == nil || t.part {
		return nil
	}
	if _, whole := p.signal.hooks(p.c.script.Definition); !whole {
		return nil
	}
	return p.signal.split(p.c.sharding, b)
}

// splits reports whether a batch of n records is split.
func (s *sharding) splits(n int) bool { return s.shardOf != nil || n >= 2*splitRows }

// rows returns the rows of each part of a column. shardOf returns the shard of
// a series.
func (s *sharding) rows(column []*batch.Series, shardOf func(*batch.Series) int) []batch.Rows {
	n := len(column)
	if s.shardOf == nil {
		rows := make([]batch.Rows, (n+splitRows-1)/splitRows)
		for i := range n {
			rows[i/splitRows].Add(i)
		}
		return rows
	}
	rows := make([]batch.Rows, s.shards)
	for i, series := range column {
		rows[shardOf(series)].Add(i)
	}
	return rows
}

// splitMetrics splits a batch of samples. Each part has its own Way, so that
// the cached columns of the parts do not replace each other.
func (s *sharding) splitMetrics(b *batch.Metrics) *split[*batch.Metrics] {
	if !s.splits(b.Len()) {
		return nil
	}
	column, at, ok := s.known.Get(b.Origin(), b.Series)
	if !ok {
		column = s.splitColumn(b.Series)
		s.known.Put(b.Origin(), b.Series, column, at)
	}
	parts := make([]*batch.Metrics, len(column.changes))
	for i, change := range column.changes {
		parts[i] = change.Apply(b)
		if parts[i] != b {
			parts[i].Way = b.Along(uint64(column.shards[i]) + 1).Way
		}
	}
	return &split[*batch.Metrics]{parts: parts, shards: column.shards, join: func(outs []*batch.Metrics) *batch.Metrics {
		return joinMetrics(b, parts, outs, column.join)
	}}
}

// splitLogs splits a batch of lines. The lines of a stream are in one part, or
// in consecutive parts, so that they are in order after joining.
func (s *sharding) splitLogs(b *batch.Logs) *split[*batch.Logs] {
	if !s.splits(b.Len()) {
		return nil
	}
	known := map[*batch.Stream]int{}
	shardOf := func(stream *batch.Stream) int {
		shard, ok := known[stream]
		if !ok {
			shard = s.shardOf(stream)
			known[stream] = shard
		}
		return shard
	}
	out := &split[*batch.Logs]{}
	for shard, rows := range s.rows(b.Stream, shardOf) {
		if rows.Len() > 0 {
			out.parts = append(out.parts, b.Only(&rows))
			out.shards = append(out.shards, shard)
		}
	}
	return out
}

// columnSplit is the split of a column of series: the rows of each part.
type columnSplit struct {
	changes []*batch.Change
	shards  []int // of each part

	mu     sync.Mutex
	parts  [][]*batch.Series // the columns of the last results of the parts
	joined []*batch.Series   // the joined column of parts
}

func (s *sharding) splitColumn(column []*batch.Series) *columnSplit {
	c := &columnSplit{}
	for shard, rows := range s.rows(column, s.shardOf) {
		if rows.Len() > 0 {
			c.changes = append(c.changes, batch.NewSelection(column, &rows))
			c.shards = append(c.shards, shard)
		}
	}
	return c
}

// join concatenates the columns of the results of the parts. If the columns are
// the same slices as last time, it returns the same slice, so that the next
// node recognises it.
func (c *columnSplit) join(outs []*batch.Metrics) []*batch.Series {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := len(c.parts) == len(outs)
	for i := 0; same && i < len(outs); i++ {
		same = batch.SameColumn(c.parts[i], outs[i].Series)
	}
	if same {
		return c.joined
	}
	c.parts, c.joined = make([][]*batch.Series, len(outs)), batch.JoinSeries(outs)
	for i, o := range outs {
		c.parts[i] = o.Series
	}
	return c.joined
}

// joinMetrics concatenates the results of the parts of b. It returns b itself
// if nothing changed. join joins their columns.
func joinMetrics(b *batch.Metrics, ins, outs []*batch.Metrics, join func(outs []*batch.Metrics) []*batch.Series) *batch.Metrics {
	if slices.Equal(outs, ins) {
		return b
	}
	return batch.JoinColumns(b.Origin(), join(outs), outs)
}

// runConcurrently calls f with 0 to n-1, at most limit calls at a time, and
// returns the first error.
func runConcurrently(n, limit int, f func(i int) error) error {
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
	for range min(n, limit) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return first
}
