package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
)

// maxMs is the largest time of a line, Unix ms, that ns can hold.
const maxMs = int64(1<<63-1)/nsPerMs - 1

// SetLine sets the line of row i.
func (m *Logs) SetLine(i int, line string) error {
	if m.line[i] == line {
		return nil
	}
	if err := m.chargeRows(1, len(line)); err != nil {
		return err
	}
	m.writeLine()[i] = line
	return nil
}

// SetTime sets the timestamp of row i, Unix ms. One that lies in that ms
// already stays as it is.
func (m *Logs) SetTime(i int, ms int64) error {
	if ms > maxMs || ms < -maxMs {
		return fmt.Errorf("cannot set time to %d: a line's time is between the years 1678 and 2261, in Unix ms", ms)
	}
	if ms != m.Time(i) {
		m.setNanos(i, ms*nsPerMs)
	}
	return nil
}

// SetTS sets the timestamp of row i to Unix ns in decimal text.
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
	if m.t[i] == t {
		return
	}
	if !m.ownT {
		m.t, m.ownT = append(make([]int64, 0, len(m.t)), m.t...), true
	}
	m.t[i] = t
}

// SetMeta sets a value of row i's metadata; an empty one removes it.
func (m *Logs) SetMeta(i int, name, value string) error {
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

func (m *Logs) writeLine() []string {
	if !m.ownLine {
		m.line, m.ownLine = append(make([]string, 0, len(m.line)), m.line...), true
	}
	return m.line
}

func (m *Logs) writeMeta() [][]batch.Label {
	if !m.ownMeta {
		meta := make([][]batch.Label, len(m.line))
		copy(meta, m.meta)
		m.meta, m.ownMeta = meta, true
	}
	return m.meta
}

// lineState is what Rollback restores.
type lineState struct {
	set     bool
	row     int
	stream  *batch.Stream
	t       int64
	line    string
	meta    []batch.Label
	flags   flags
	way     uint8
	emitted int
}

// Mark remembers row i as it is, and how much was emitted.
func (m *Logs) Mark(i int) {
	m.mark = lineState{set: true, row: i, stream: m.Stream(i), t: m.t[i], line: m.line[i], meta: m.Meta(i), emitted: len(m.emitted)}
	if len(m.flags) > 0 {
		m.mark.flags = m.flags[i]
	}
	if len(m.ways) > 0 {
		m.mark.way = m.ways[i]
	}
}

// Rollback undoes what was done to the marked row since Mark, and what was
// emitted. Without a Mark in this batch it does nothing.
func (m *Logs) Rollback() {
	k := m.mark
	if !k.set {
		return
	}
	i := k.row
	if m.editing == i {
		m.editing = -1
	}
	if m.series[i] != k.stream {
		m.writeSeries()[i] = k.stream
	}
	m.setNanos(i, k.t)
	if m.line[i] != k.line {
		m.writeLine()[i] = k.line
	}
	if m.ownMeta {
		m.meta[i] = k.meta
	}
	if len(m.flags) > 0 && m.flags[i] != k.flags {
		if m.flags[i]&isDropped != 0 && k.flags&isDropped == 0 {
			m.dropped--
		}
		m.flags[i] = k.flags
	}
	if len(m.ways) > 0 {
		m.setWay(i, k.way)
	}
	m.Unemit(k.emitted)
}

// LogRecord is a record of its own: what Copy returns, and what a script emits.
type LogRecord struct {
	Line   string
	Labels []batch.Label // any order; an empty value is no label
	Meta   []batch.Label // any order, names unique; an empty value is none
	T      int64         // Unix ns

	from *batch.Stream // the stream that it was copied from
}

// SetTime sets the time in Unix ms, as Logs.SetTime does.
func (r *LogRecord) SetTime(ms int64) error {
	if ms > maxMs || ms < -maxMs {
		return fmt.Errorf("cannot set time to %d: a line's time is between the years 1678 and 2261, in Unix ms", ms)
	}
	if ms != batch.Millis(r.T) {
		r.T = ms * nsPerMs
	}
	return nil
}

// Time returns the time in Unix ms, the ms in which it lies.
func (r *LogRecord) Time() int64 { return batch.Millis(r.T) }

// SetTS sets the time in Unix ns, in decimal text.
func (r *LogRecord) SetTS(ns string) error {
	t, err := parseTS(ns)
	if err == nil {
		r.T = t
	}
	return err
}

type emittedLine struct {
	way    int
	stream *batch.Stream
	t      int64
	line   string
	meta   []batch.Label
}

// Copy returns row i as edited, as a record that outlives the batch: its texts
// are its own.
func (m *Logs) Copy(i int) LogRecord {
	s := m.Stream(i)
	r := LogRecord{Line: strings.Clone(m.line[i]), T: m.t[i], from: s, Labels: s.AppendLabels(nil)}
	for _, l := range m.Meta(i) {
		r.Meta = append(r.Meta, batch.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)})
	}
	return r
}

// Emit appends a record to the result. It is not seen through the window: the
// batch operations do not touch it. Its handle is derived from the stream that
// it was copied from, or interned.
func (m *Logs) Emit(r LogRecord) error { return m.EmitTo(0, r) }

// EmitTo is Emit to a way.
func (m *Logs) EmitTo(way int, r LogRecord) error {
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
	e := emittedLine{way: way, t: r.T, line: r.Line, meta: meta}
	if r.from != nil && !r.from.Released() {
		e.stream, _ = m.cache.derive(r.from, b, m.now)
	} else {
		e.stream = m.cache.intern.Intern(b.Labels(), nil, m.now)
	}
	m.emitted = append(m.emitted, e)
	return nil
}

// Emitted returns how many records were emitted in this batch.
func (m *Logs) Emitted() int { return len(m.emitted) }

// Unemit takes back all but the first n records that were emitted.
func (m *Logs) Unemit(n int) {
	clear(m.emitted[n:])
	m.emitted = m.emitted[:n]
}

// Apply returns the batch with the edits, which shares every column that was
// not edited. The window stays as it is; it must be Reset before it is edited
// again.
func (m *Logs) Apply() Result[*batch.Logs] {
	m.flush()
	m.forgetNothings()
	r := Result[*batch.Logs]{Batch: m.in, Dropped: m.dropped, Emitted: len(m.emitted)}
	r.Dropped -= m.routed
	m.whole = m.in
	if !m.ownSeries && !m.ownT && !m.ownLine && !m.ownMeta && m.dropped == 0 && len(m.emitted) == 0 {
		return r
	}
	if m.ownSeries || m.ownT || m.ownLine || m.ownMeta {
		m.whole = &batch.Logs{Source: m.in.Source, Way: m.in.Way, Ack: m.in.Ack, Stream: m.series, T: m.t, Line: m.line, Meta: m.meta}
	}
	r.Batch = m.Part(1)
	// The columns are the result's now.
	m.ownSeries, m.ownT, m.ownLine, m.ownMeta = false, false, false, false
	return r
}

// forgetNothings gives up copies of columns that hold what the source's do.
func (m *Logs) forgetNothings() {
	if m.ownSeries && slices.Equal(m.series, m.column) {
		m.series, m.ownSeries = m.column, false
	}
	if m.ownT && slices.Equal(m.t, m.in.T) {
		m.t, m.ownT = m.in.T, false
	}
	if m.ownLine && slices.Equal(m.line, m.in.Line) {
		m.line, m.ownLine = m.in.Line, false
	}
	if m.ownMeta && !slices.ContainsFunc(m.meta, func(l []batch.Label) bool { return len(l) > 0 }) && m.in.Meta == nil {
		m.meta, m.ownMeta = nil, false
	}
	if m.ownMeta && m.in.Meta != nil && slices.EqualFunc(m.meta, m.in.Meta, slices.Equal[[]batch.Label]) {
		m.meta, m.ownMeta = m.in.Meta, false
	}
}

// Part returns, after Apply, what leaves by any of the ways, which are bits.
func (m *Logs) Part(ways uint64) *batch.Logs {
	on := func(way int) bool { return ways>>way&1 == 1 }
	out := m.whole.Select(func(i int) bool { return on(m.outputOf(i)) })
	var emitted []emittedLine
	for _, e := range m.emitted {
		if on(e.way) {
			emitted = append(emitted, e)
		}
	}
	if len(emitted) == 0 {
		return out
	}
	copied := *out // it may be the whole itself
	appendLines(&copied, emitted)
	return &copied
}

// RoutedTo returns, after Apply, how many records leave by a way.
func (m *Logs) RoutedTo(way int) (n int) {
	for i := range m.series {
		if m.outputOf(i) == way {
			n++
		}
	}
	for i := range m.emitted {
		if m.emitted[i].way == way {
			n++
		}
	}
	return n
}

// appendLines adds records to out, whose columns may be shared.
func appendLines(out *batch.Logs, emitted []emittedLine) {
	n, k := len(out.Stream), len(emitted)
	out.Stream = append(make([]*batch.Stream, 0, n+k), out.Stream...)
	out.T = append(make([]int64, 0, n+k), out.T...)
	out.Line = append(make([]string, 0, n+k), out.Line...)
	hasMeta := out.Meta != nil || slices.ContainsFunc(emitted, func(e emittedLine) bool { return len(e.meta) > 0 })
	if hasMeta {
		meta := make([][]batch.Label, n, n+k)
		copy(meta, out.Meta)
		out.Meta = meta
	}
	for _, e := range emitted {
		out.Stream, out.T, out.Line = append(out.Stream, e.stream), append(out.T, e.t), append(out.Line, e.line)
		if hasMeta {
			out.Meta = append(out.Meta, e.meta)
		}
	}
}
