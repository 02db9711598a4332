package batch

// Stream is the handle of one log stream. It is a Series: both are an immutable
// set of labels with a dense ID in one space, so that whatever is remembered by
// handle (Memo, ColumnMemo, Interner) or derived from one serves both signals.
// A stream has no metadata of its own, and a label called __name__ is one like
// any other.
type Stream = Series

// Logs is a batch of log lines in columns: row i is Line[i] of Stream[i] at
// T[i]. The columns have equal length; Meta is nil when no line has metadata.
type Logs struct {
	// Source and Way are those of Metrics. Lines of one Source are sent one
	// batch after the other, which is the order of its streams.
	Source uint64
	Way    uint64

	Stream []*Stream
	T      []int64  // Unix ns
	Line   []string // any bytes; many lines may be parts of one memory
	// Meta is the structured metadata of each line: sorted by name, names
	// unique, values may be empty. Rows may share a slice.
	Meta [][]Label

	// Ack is the source's, nil when it does not ask. It is not a part of what
	// the batch says: no form of text or bytes has it.
	Ack *Ack
}

// Millis returns a time in Unix ns as Unix ms: the ms in which it lies.
func Millis(ns int64) int64 {
	ms := ns / 1e6
	if ns%1e6 < 0 {
		ms--
	}
	return ms
}

// Len returns the number of rows; of nil none.
func (b *Logs) Len() int {
	if b == nil {
		return 0
	}
	return len(b.Stream)
}

// Origin returns the batch's.
func (b *Logs) Origin() Origin { return Origin{b.Source, b.Way} }

// Along is Metrics.Along.
func (b *Logs) Along(receiver uint64) *Logs {
	c := *b
	c.Way = nextWay(b.Way, receiver)
	return &c
}

// MetaOf returns the metadata of a row, nil when it has none.
func (b *Logs) MetaOf(row int) []Label {
	if b.Meta == nil {
		return nil
	}
	return b.Meta[row]
}

// Bytes returns how long all lines are together.
func (b *Logs) Bytes() (n int) {
	for _, l := range b.Line {
		n += len(l)
	}
	return n
}

// withRows returns the batch with only those rows, of which streams are the handles.
func (b *Logs) withRows(streams []*Stream, r *Rows) *Logs {
	out := &Logs{Source: b.Source, Way: b.Way, Ack: b.Ack, Stream: streams, T: pick(r, b.T), Line: pick(r, b.Line)}
	if b.Meta != nil {
		out.Meta = pick(r, b.Meta)
	}
	return out
}

// Select returns the batch with only the rows for which keep is true; b itself
// when that is all of them. Handles, lines and metadata are shared, columns are
// not.
func (b *Logs) Select(keep func(row int) bool) *Logs {
	r := rowsWhere(len(b.Stream), keep)
	return b.Only(&r)
}

// Only is Select for rows that are known.
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
