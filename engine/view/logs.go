package view

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// Logs is a VM's window on a batch of log lines, as Metrics is for samples.
// Results are cached by stream and by label operation, but not by column,
// because each batch of lines has another column.
//
// The zero value is ready for Reset. It is not safe for concurrent use.
type Logs struct {
	overlay[*batch.Logs, emittedLine]

	line edited[string]
	meta edited[[]batch.Label] // nil: no line has metadata

	marked emittedLine // the line and the metadata at Mark

	// Look-ups of this VM in this batch.
	promoted    map[promotion]*batch.Stream
	bytes       func() int64 // of in
	projections map[string]*Projection
	templates   map[string]*template
	text        []byte // scratch memory for templates
	ends        []int
}

var noLogs = new(batch.Logs)

// Reset moves the window to b and discards all edits. now is the time of use
// for interned handles. Records of the previous batch become invalid.
func (m *Logs) Reset(b *batch.Logs, gen *Cache, now time.Time) {
	if m.judge == nil {
		m.judge, m.logs = m.judgeRow, true
		m.bytes = func() int64 { return int64(m.in.Bytes()) }
	}
	if sweep := gen.sweeps.Load(); m.cache != gen || m.sweep != sweep {
		m.projections, m.templates = map[string]*Projection{}, map[string]*template{}
	}
	m.Window.reset(gen, now, b.Origin(), b.Stream)
	m.spare = m.bytes
	m.resetEdits(b, b.T)
	m.line.reset(b.Line)
	m.meta.reset(b.Meta)
	m.marked = emittedLine{}
	clear(m.promoted)
}

// Done ends the use of the batch: the window becomes empty, records become
// invalid, and the batch is no longer referenced. The result of Apply stays
// valid.
func (m *Logs) Done() {
	m.Reset(noLogs, m.cache, m.now)
	m.clear()
	for _, p := range m.projections {
		clear(p.values)
	}
}

// Stream returns the handle of row i as edited.
func (m *Logs) Stream(i int) *batch.Stream { return m.Series(i) }

// Line returns the line of row i.
func (m *Logs) Line(i int) string { return m.line.rows[i] }

// FixedLine returns a pointer to the immutable line of row i, or nil if the
// line was edited.
func (m *Logs) FixedLine(i int) *string {
	if m.line.own {
		return nil
	}
	return &m.line.rows[i]
}

const nsPerMs = int64(time.Millisecond)

// Time returns the timestamp of row i in Unix ms, rounded down.
func (m *Logs) Time(i int) int64 { return batch.Millis(m.t.rows[i]) }

// Nanos returns the timestamp of row i in Unix ns.
func (m *Logs) Nanos(i int) int64 { return m.t.rows[i] }

// TS returns the timestamp of row i in Unix ns as decimal text, because a
// script's numbers are not precise enough.
func (m *Logs) TS(i int) string { return strconv.FormatInt(m.t.rows[i], 10) }

// Meta returns the structured metadata of row i, sorted by name. It must not be
// modified.
func (m *Logs) Meta(i int) []batch.Label {
	if m.meta.rows == nil {
		return nil
	}
	return m.meta.rows[i]
}

// MetaValue returns a value of row i's metadata, or "" if it is missing.
func (m *Logs) MetaValue(i int, name string) string {
	for _, l := range m.Meta(i) {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// MetaAll yields the metadata of row i in name order, without empty values. The
// row may be edited during the iteration, which still yields the original
// metadata.
func (m *Logs) MetaAll(i int) iter.Seq2[string, string] {
	meta := m.Meta(i)
	return func(yield func(string, string) bool) {
		for _, l := range meta {
			if l.Value != "" && !yield(l.Name, l.Value) {
				return
			}
		}
	}
}

// judgeRow evaluates the part of p that depends on row i. said is the verdict
// of its label part.
func (m *Logs) judgeRow(p *predicate, i int, said expr.Verdict) (expr.Verdict, error) {
	m.fill(i)
	var ok bool
	var err error
	if said == expr.True {
		ok, err = p.prog.Rest(&m.sample)
	} else {
		ok, err = p.prog.Bool(&m.sample)
	}
	if ok {
		return expr.True, err
	}
	return expr.False, err
}

func (m *Logs) fill(i int) {
	m.sample.Series, m.sample.Time = m.series.rows[i], batch.Millis(m.t.rows[i])
	m.sample.Line, m.sample.Meta = m.line.rows[i], m.Meta(i)
}

// Projection returns the projection of fields, which are named as in rows and
// filter. If kind is "json" or "logfmt", all names are paths or keys of the
// line instead. A Projection is valid for one batch; requesting it again for
// the next batch is cheap.
func (m *Logs) Projection(kind string, names []string) (*Projection, error) {
	if len(names) == 0 || len(names) > maxFields {
		return nil, fmt.Errorf("cannot read %d fields: name between 1 and %d", len(names), maxFields)
	}
	key := kind + "\x00" + strings.Join(names, "\x00")
	p, ok := m.projections[key]
	if !ok {
		fields := make([]field, len(names))
		for i, name := range names {
			var err error
			switch kind {
			case "json":
				fields[i], err = jsonField(name)
			case "logfmt":
				fields[i], err = logfmtField(name)
			default:
				fields[i], err = parseField(name)
			}
			if err != nil {
				return nil, err
			}
		}
		p = newProjection(fields)
		if len(m.projections) < m.cache.opts.MaxMemos {
			m.projections[key] = p
		}
	}
	for i, f := range p.slots {
		if f.kind == fieldLabel {
			p.cols[i] = m.Column("labels." + f.name)
		}
	}
	return p, nil
}

// Read appends the fields of row i to dst, one Cell each. They are valid until
// the next Read of the projection.
func (m *Logs) Read(p *Projection, i int, dst []Cell) []Cell {
	p.read(m, i)
	for k := range p.order {
		dst = append(dst, p.cellAt(m, i, k))
	}
	return dst
}

// JSON parses the line of row i as JSON and returns the value at path.
func (m *Logs) JSON(i int, path string) (Value, error) {
	p, err := m.Projection("json", []string{path})
	if err != nil {
		return Value{}, err
	}
	p.read(m, i)
	return p.values[0], nil
}

// Text appends row i as edited in text form.
func (m *Logs) Text(dst []byte, i int) []byte {
	row := &batch.Logs{Stream: []*batch.Stream{m.Stream(i)}, T: m.t.rows[i : i+1], Line: m.line.rows[i : i+1]}
	if m.meta.rows != nil {
		row.Meta = m.meta.rows[i : i+1]
	}
	return batch.AppendLogsText(dst, row)
}

// sortedMeta sorts metadata by name. Duplicate names are an error.
func sortedMeta(meta []batch.Label) ([]batch.Label, error) {
	slices.SortStableFunc(meta, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(meta); i++ {
		if meta[i-1].Name == meta[i].Name {
			return nil, fmt.Errorf("cannot use metadata %q twice", meta[i].Name)
		}
	}
	return meta, nil
}
