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

// Logs is one VM's window on a batch of log lines: what Metrics is for samples.
// A stream's handle is remembered as a series' is, and so are the label
// operations; a batch of lines has another column each time, so that is not.
//
// The zero value is ready for Reset. Not safe for concurrent use.
type Logs struct {
	overlay[*batch.Logs, emittedLine]

	line edited[string]
	meta edited[[]batch.Label] // nil: none has any

	marked emittedLine // the line and the metadata at Mark

	// What is looked up in this batch, and by this VM.
	promoted    map[promotion]*batch.Stream
	bytes       func() int64 // of in
	projections map[string]*Projection
	templates   map[string]*template
	text        []byte // scratch of templates
	ends        []int
}

var noLogs = new(batch.Logs)

// Reset puts the window over b and forgets all edits. now stamps the use of
// interned handles. Records of the batch before are dead from here on.
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

// Done ends the use of the batch: the window is empty, records are dead, and
// nothing of the batch is held. Apply's result stays valid.
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

// FixedLine returns the line of row i where it is never written to, nil when it
// was edited.
func (m *Logs) FixedLine(i int) *string {
	if m.line.own {
		return nil
	}
	return &m.line.rows[i]
}

const nsPerMs = int64(time.Millisecond)

// Time returns the timestamp of row i in Unix ms, the ms in which it lies.
func (m *Logs) Time(i int) int64 { return batch.Millis(m.t.rows[i]) }

// Nanos returns the timestamp of row i in Unix ns.
func (m *Logs) Nanos(i int) int64 { return m.t.rows[i] }

// TS returns the timestamp of row i in Unix ns as decimal text, which numbers of
// scripts cannot hold.
func (m *Logs) TS(i int) string { return strconv.FormatInt(m.t.rows[i], 10) }

// Meta returns the structured metadata of row i, sorted by name. It must not be
// written to.
func (m *Logs) Meta(i int) []batch.Label {
	if m.meta.rows == nil {
		return nil
	}
	return m.meta.rows[i]
}

// MetaValue returns a value of row i's metadata, "" when it is missing.
func (m *Logs) MetaValue(i int, name string) string {
	for _, l := range m.Meta(i) {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// MetaAll yields the metadata of row i in name order, without what is empty. The
// row may be edited meanwhile; the loop sees it as it was.
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

// judgeRow evaluates what the label part, which said so, left to tell of row i.
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

// Projection returns the projection of fields, which are named as rows and
// filter name them; kind "json" or "logfmt" says that all are paths or keys of
// the line instead. It serves one batch; asking again in the next one is cheap.
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

// Read returns the fields of row i, one Cell each, valid until the next Read of
// the projection.
func (m *Logs) Read(p *Projection, i int, dst []Cell) []Cell {
	p.read(m, i)
	for k := range p.order {
		dst = append(dst, p.cellAt(m, i, k))
	}
	return dst
}

// JSON returns what is at a path in the line of row i, read as JSON.
func (m *Logs) JSON(i int, path string) (Value, error) {
	p, err := m.Projection("json", []string{path})
	if err != nil {
		return Value{}, err
	}
	p.read(m, i)
	return p.values[0], nil
}

// Text returns row i as edited in text form.
func (m *Logs) Text(dst []byte, i int) []byte {
	row := &batch.Logs{Stream: []*batch.Stream{m.Stream(i)}, T: m.t.rows[i : i+1], Line: m.line.rows[i : i+1]}
	if m.meta.rows != nil {
		row.Meta = m.meta.rows[i : i+1]
	}
	return batch.AppendLogsText(dst, row)
}

// sortedMeta sorts metadata by name, of which one that appears twice is a
// mistake.
func sortedMeta(meta []batch.Label) ([]batch.Label, error) {
	slices.SortStableFunc(meta, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(meta); i++ {
		if meta[i-1].Name == meta[i].Name {
			return nil, fmt.Errorf("cannot use metadata %q twice", meta[i].Name)
		}
	}
	return meta, nil
}
