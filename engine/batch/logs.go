package batch

// Stream is the handle of one log stream. It is a Series: both are an immutable
// set of labels with a dense ID from the same allocator. Caches by handle
// (Memo, ColumnMemo, Interner) and derived values therefore work for both
// signals. A stream has no metadata, and its label __name__ has no special
// meaning.
type Stream = Series

// Logs is a batch of log lines in columns. Row i is Line[i] of Stream[i] at
// T[i]. The columns have equal length. Meta is nil if no line has metadata.
type Logs struct {
	// Source and Way are as in Metrics. Batches of one Source are sent one after
	// another, which keeps the lines of a stream in order.
	Source uint64
	Way    uint64

	Stream []*Stream
	T      []int64  // Unix ns
	Line   []string // any bytes; several lines may share memory
	// Meta is the structured metadata of each line, sorted by name. Names are
	// unique; values may be empty. Rows may share a slice.
	Meta [][]Label

	// Ack is the acknowledgement for the source, or nil if the source does not
	// wait for one. Neither the text nor the binary form contains it.
	Ack *Ack
}

// Millis converts a time from Unix ns to Unix ms, rounded down.
func Millis(ns int64) int64 {
	ms := ns / 1e6
	if ns%1e6 < 0 {
		ms--
	}
	return ms
}

// Len returns the number of rows. It is 0 if b is nil.
func (b *Logs) Len() int {
	if b == nil {
		return 0
	}
	return len(b.Stream)
}

// Origin returns the Source and Way of b.
func (b *Logs) Origin() Origin { return Origin{b.Source, b.Way} }

// Along is like Metrics.Along.
func (b *Logs) Along(receiver uint64) *Logs {
	c := *b
	c.Way = nextWay(b.Way, receiver)
	return &c
}

// MetaOf returns the metadata of a row, or nil if it has none.
func (b *Logs) MetaOf(row int) []Label {
	if b.Meta == nil {
		return nil
	}
	return b.Meta[row]
}

// Bytes returns the total length of all lines.
func (b *Logs) Bytes() (n int) {
	for _, l := range b.Line {
		n += len(l)
	}
	return n
}

// withRows returns the batch with only the rows r, whose handles are streams.
func (b *Logs) withRows(streams []*Stream, r *Rows) *Logs {
	out := &Logs{Source: b.Source, Way: b.Way, Ack: b.Ack, Stream: streams, T: pick(r, b.T), Line: pick(r, b.Line)}
	if b.Meta != nil {
		out.Meta = pick(r, b.Meta)
	}
	return out
}

// Select returns a batch with only the rows for which keep is true, or b itself
// if keep is true for all rows. The batches share handles, lines and metadata,
// but not columns.
func (b *Logs) Select(keep func(row int) bool) *Logs {
	r := rowsWhere(len(b.Stream), keep)
	return b.Only(&r)
}

// Only is like Select, for a known set of rows.
func (b *Logs) Only(r *Rows) *Logs {
	if r.n == len(b.Stream) {
		return b
	}
	return b.withRows(pick(r, b.Stream), r)
}

// Rows returns a new batch of the given rows, which must be ascending.
func (b *Logs) Rows(rows []int) *Logs {
	r := rowsOf(rows)
	return b.withRows(pick(&r, b.Stream), &r)
}
