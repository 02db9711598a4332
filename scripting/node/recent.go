package node

import (
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// recent keeps the most recent batches that a node has accepted, for the step shadow.
// It holds pointers: batches are immutable.
type recent struct {
	mu      sync.Mutex
	size    int64
	batches []keptBatch // oldest first, from index first
	first   int
	columns map[**batch.Series]int // batches that share a column, by its first element
}

// keptBatch is a batch, and what it counts for.
type keptBatch struct {
	payload
	size int64 // without the column of handles
}

// Estimates of what a batch holds, in bytes.
const (
	keptBatchBytes  = 256 // a batch and its place in the list
	keptRowBytes    = 16  // the time and the value of a sample
	keptLineBytes   = 24  // a line without its text
	keptHandleBytes = 256 // a handle that nobody else may hold any more
	keptCellBytes   = 512 // a native histogram, or an exemplar
	keptLabelBytes  = 64  // of structured metadata
)

// estimate returns about how many bytes a batch holds without the column of handles,
// which batches of one source mostly share.
func (b payload) estimate() int64 {
	if m := b.Metrics; m != nil {
		return keptBatchBytes + keptRowBytes*int64(m.Len()) + keptCellBytes*int64(len(m.Histograms)+len(m.Exemplars)) + keptRowBytes*int64(len(m.Starts))
	}
	size := keptBatchBytes + keptLineBytes*int64(b.Logs.Len()) + int64(b.Logs.Bytes())
	for _, meta := range b.Logs.Meta {
		size += keptLineBytes + keptLabelBytes*int64(len(meta))
	}
	return size
}

// column returns the handles of a batch, which is not empty.
func (b payload) column() []*batch.Series {
	if b.Metrics != nil {
		return b.Metrics.Series
	}
	return b.Logs.Stream
}

// clear drops all batches.
func (r *recent) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shrink(0)
	r.batches, r.first, r.columns = nil, 0, nil
}

// add keeps a batch that is not empty, and drops the oldest ones that have no room
// within limit, which is in bytes. A batch that has more than the limit is not kept.
func (r *recent) add(b payload, limit int64) {
	if l := b.Logs; l != nil && l.Ack != nil {
		without := *l // its source must not wait for it
		without.Ack = nil
		b.Logs = &without
	}
	k := keptBatch{b, b.estimate()}
	column := b.column()
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.size+keptHandleBytes*int64(len(column)) > limit {
		return
	}
	if r.columns == nil {
		r.columns = map[**batch.Series]int{}
	}
	if r.columns[&column[0]]++; r.columns[&column[0]] == 1 {
		r.size += keptHandleBytes * int64(len(column))
	}
	r.size += k.size
	r.batches = append(r.batches, k)
	r.shrink(limit)
}

// shrink drops the oldest batches that have no room within limit. It is called with
// mu held.
func (r *recent) shrink(limit int64) {
	for ; r.size > limit; r.first++ {
		k := &r.batches[r.first]
		column := k.column()
		if r.columns[&column[0]]--; r.columns[&column[0]] == 0 {
			delete(r.columns, &column[0])
			r.size -= keptHandleBytes * int64(len(column))
		}
		r.size -= k.size
		*k = keptBatch{}
	}
	if r.first > len(r.batches)/2 { // each batch is moved once
		n := copy(r.batches, r.batches[r.first:])
		clear(r.batches[n:])
		r.batches, r.first = r.batches[:n], 0
	}
}

// all returns the batches, oldest first.
func (r *recent) all() []payload {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]payload, 0, len(r.batches)-r.first)
	for _, k := range r.batches[r.first:] {
		out = append(out, k.payload)
	}
	return out
}
