package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
)

// maxMs is the latest time of a line, in Unix ms, that can be represented in
// ns.
const maxMs = int64(1<<63-1)/nsPerMs - 1

// SetLine sets the line of row i.
func (m *Logs) SetLine(i int, line string) error {
	m.traceEdit()
	if m.line.rows[i] == line {
		return nil
	}
	if err := m.chargeRows(1, len(line)); err != nil {
		return err
	}
	m.line.write()[i] = line
	return nil
}

// SetTime sets the timestamp of row i in Unix ms. If the timestamp is already
// within that ms, it keeps its ns.
func (m *Logs) SetTime(i int, ms int64) error {
	if ms > maxMs || ms < -maxMs {
		return fmt.Errorf("cannot set time to %d: a line's time is between the years 1678 and 2261, in Unix ms", ms)
	}
	if ms != m.Time(i) {
		m.setNanos(i, ms*nsPerMs)
	}
	return nil
}

// SetTS sets the timestamp of row i to Unix ns given as decimal text.
func (m *Logs) SetTS(i int, ns string) error {
	t, err := parseTS(ns)
	if err == nil {
		m.setNanos(i, t)
	}
	return err
}

func parseTS(ns string) (int64, error) {
	t, err := strconv.ParseInt(ns, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot set ts to %q: it is Unix ns in digits, such as %q; time takes Unix ms", ns, "1735689600000000001")
	}
	return t, nil
}

func (m *Logs) setNanos(i int, t int64) {
	m.traceEdit()
	if m.t.rows[i] != t {
		m.t.write()[i] = t
	}
}

// SetMeta sets a value of row i's metadata. An empty value removes it.
func (m *Logs) SetMeta(i int, name, value string) error {
	m.traceEdit()
	if err := checkMeta(name, value); err != nil {
		return err
	}
	if err := m.chargeRows(1, len(name)+len(value)); err != nil {
		return err
	}
	old := m.Meta(i)
	k, found := slices.BinarySearchFunc(old, name, func(l batch.Label, n string) int { return strings.Compare(l.Name, n) })
	switch {
	case !found && value == "", found && old[k].Value == value && value != "":
		return nil
	case value == "":
		m.writeMeta()[i] = slices.Delete(slices.Clone(old), k, k+1)
	case found:
		meta := slices.Clone(old)
		meta[k].Value = value
		m.writeMeta()[i] = meta
	default:
		meta := make([]batch.Label, 0, len(old)+1)
		meta = append(append(append(meta, old[:k]...), batch.Label{Name: name, Value: value}), old[k:]...)
		m.writeMeta()[i] = meta
	}
	return nil
}

func checkMeta(name, value string) error {
	switch {
	case name == "":
		return fmt.Errorf("cannot use an empty name in metadata")
	case len(name) > maxLabelName:
		return fmt.Errorf("cannot use a name of %d bytes in metadata: the limit is %d", len(name), maxLabelName)
	case len(value) > maxLabelValue:
		return fmt.Errorf("cannot set metadata %q to %d bytes: the limit is %d", name, len(value), maxLabelValue)
	case !utf8.ValidString(name):
		return fmt.Errorf("cannot use %q in metadata: it is not valid UTF-8", name)
	case !utf8.ValidString(value):
		return fmt.Errorf("cannot set metadata %q to %q: it is not valid UTF-8", name, value)
	}
	return nil
}

func (m *Logs) writeMeta() [][]batch.Label {
	if m.meta.rows == nil {
		m.meta = edited[[]batch.Label]{rows: make([][]batch.Label, len(m.line.rows)), own: true}
	}
	return m.meta.write()
}

// Mark records the state of row i, and the number of emitted records, for
// Rollback.
func (m *Logs) Mark(i int) {
	m.markRow(i)
	m.marked = emittedLine{m.line.rows[i], m.Meta(i)}
}

// Rollback undoes all changes to the marked row and all emitted records since
// Mark. If Mark was not called for this batch, it does nothing.
func (m *Logs) Rollback() {
	i := m.rollbackRow()
	if i < 0 {
		return
	}
	if m.line.rows[i] != m.marked.line {
		m.line.write()[i] = m.marked.line
	}
	if m.meta.own {
		m.meta.rows[i] = m.marked.meta
	}
}

// LogRecord is a record outside of a batch: the result of Copy, or a record
// that a script emits.
type LogRecord struct {
	Line   string
	Labels []batch.Label // any order; a label with an empty value is ignored
	Meta   []batch.Label // any order, names unique; empty values are ignored
	T      int64         // Unix ns

	from *batch.Stream // the stream that it was copied from
}

// SetTime sets the time in Unix ms, in the same way as Logs.SetTime.
func (r *LogRecord) SetTime(ms int64) error {
	if ms > maxMs || ms < -maxMs {
		return fmt.Errorf("cannot set time to %d: a line's time is between the years 1678 and 2261, in Unix ms", ms)
	}
	if ms != batch.Millis(r.T) {
		r.T = ms * nsPerMs
	}
	return nil
}

// Time returns the time in Unix ms, rounded down.
func (r *LogRecord) Time() int64 { return batch.Millis(r.T) }

// SetTS sets the time to Unix ns given as decimal text.
func (r *LogRecord) SetTS(ns string) error {
	t, err := parseTS(ns)
	if err == nil {
		r.T = t
	}
	return err
}

// emittedLine contains the data of an emitted record except its stream and
// time.
type emittedLine struct {
	line string
	meta []batch.Label
}

// Copy returns row i as edited. The record stays valid after the batch: its
// texts are copied.
func (m *Logs) Copy(i int) LogRecord {
	s := m.Stream(i)
	r := LogRecord{Line: strings.Clone(m.line.rows[i]), T: m.t.rows[i], from: s, Labels: s.AppendLabels(nil)}
	for _, l := range m.Meta(i) {
		r.Meta = append(r.Meta, batch.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)})
	}
	return r
}

// Emit appends a record to the result. It is not visible in the window, and
// batch operations do not affect it. Its handle is derived from the stream that
// it was copied from, or interned.
func (m *Logs) Emit(r LogRecord) error { return m.EmitTo(0, r) }

// EmitTo is like Emit, for a way.
func (m *Logs) EmitTo(way int, r LogRecord) error {
	m.traceEdit()
	b := &m.scratch
	b.Reset(nil)
	if err := checkCount(r.Labels); err != nil {
		return err
	}
	if err := checkCount(r.Meta); err != nil {
		return err
	}
	if err := m.chargeRows(1, 100+len(r.Line)+labelBytes(r.Labels)+labelBytes(r.Meta)); err != nil {
		return err
	}
	for _, l := range r.Labels {
		if err := checkLabelName(l.Name, true); err != nil {
			return err
		}
		if err := checkLabelValue(l.Name, l.Value); err != nil {
			return err
		}
		b.Set(l.Name, l.Value)
	}
	var meta []batch.Label
	for _, l := range r.Meta {
		if l.Value == "" {
			continue
		}
		if err := checkMeta(l.Name, l.Value); err != nil {
			return err
		}
		meta = append(meta, l)
	}
	meta, err := sortedMeta(meta)
	if err != nil {
		return err
	}
	e := emitted[emittedLine]{way: way, t: r.T, rest: emittedLine{r.Line, meta}}
	if r.from != nil && !r.from.Released() {
		e.series, _ = m.cache.derive(r.from, b, m.now)
	} else {
		e.series = m.cache.intern.Intern(b.Labels(), nil, m.now)
	}
	m.emitted = append(m.emitted, e)
	return nil
}

// Apply returns the batch with the edits. The result shares every column that
// was not edited. The window does not change; it must be Reset before it is
// edited again.
func (m *Logs) Apply() Result[*batch.Logs] {
	m.flush()
	m.forgetNothings()
	r := Result[*batch.Logs]{Batch: m.in, Dropped: m.dropped, Emitted: len(m.emitted)}
	r.Dropped -= m.routed
	m.whole = m.in
	edited := m.series.own || m.t.own || m.line.own || m.meta.own
	if !edited && m.dropped == 0 && len(m.emitted) == 0 {
		return r
	}
	if edited {
		m.whole = &batch.Logs{Source: m.in.Source, Way: m.in.Way, Ack: m.in.Ack, Stream: m.series.rows, T: m.t.rows, Line: m.line.rows, Meta: m.meta.rows}
	}
	r.Batch = m.Part(1)
	// The columns now belong to the result.
	m.series.own, m.t.own, m.line.own, m.meta.own = false, false, false, false
	return r
}

// forgetNothings discards copies of columns that equal the columns of the
// source.
func (m *Logs) forgetNothings() {
	m.series.revert(m.column, slices.Equal[[]*batch.Stream])
	m.t.revert(m.in.T, slices.Equal[[]int64])
	m.line.revert(m.in.Line, slices.Equal[[]string])
	m.meta.revert(m.in.Meta, sameMetadata)
}

// sameMetadata reports whether two columns are equal. nil equals a column
// without metadata.
func sameMetadata(a, b [][]batch.Label) bool {
	if b == nil {
		return !slices.ContainsFunc(a, func(l []batch.Label) bool { return len(l) > 0 })
	}
	return slices.EqualFunc(a, b, slices.Equal[[]batch.Label])
}

// Part returns, after Apply, the rows and emitted records that leave by any of
// the ways, given as bits.
func (m *Logs) Part(ways uint64) *batch.Logs {
	out := m.whole.Select(func(i int) bool { return m.leavesBy(ways, i) })
	if m.emittedBy(ways) == 0 {
		return out
	}
	copied := *out // a copy, because it may be the whole batch itself
	m.appendEmitted(&copied, ways)
	return &copied
}

// appendEmitted appends the records that were emitted to any of the ways, given
// as bits, to out. The columns of out may be shared.
func (m *Logs) appendEmitted(out *batch.Logs, ways uint64) {
	n, k := len(out.Stream), m.emittedBy(ways)
	out.Stream = append(make([]*batch.Stream, 0, n+k), out.Stream...)
	out.T = append(make([]int64, 0, n+k), out.T...)
	out.Line = append(make([]string, 0, n+k), out.Line...)
	hasMeta := out.Meta != nil || slices.ContainsFunc(m.emitted, func(e emitted[emittedLine]) bool {
		return ways>>e.way&1 == 1 && len(e.rest.meta) > 0
	})
	if hasMeta {
		meta := make([][]batch.Label, n, n+k)
		copy(meta, out.Meta)
		out.Meta = meta
	}
	for _, e := range m.emitted {
		if ways>>e.way&1 == 0 {
			continue
		}
		out.Stream, out.T, out.Line = append(out.Stream, e.series), append(out.T, e.t), append(out.Line, e.rest.line)
		if hasMeta {
			out.Meta = append(out.Meta, e.rest.meta)
		}
	}
}
