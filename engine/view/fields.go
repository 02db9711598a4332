package view

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/scan"
)

// field is a part of a log line's record, as named in rows, filter, promote and
// templates:
//
//	line  time  ts              the line, Unix ms, Unix ns as text
//	labels.app  meta.trace_id   a label, structured metadata
//	json.user.id  logfmt.level  a field of the line, parsed as JSON or logfmt
//
// Any other name without a dot is a label.
type field struct {
	kind fieldKind
	name string
	path scan.Path
}

type fieldKind byte

const (
	fieldLine   fieldKind = 'l'
	fieldTime   fieldKind = 't'
	fieldTS     fieldKind = 'n'
	fieldLabel  fieldKind = 'L'
	fieldMeta   fieldKind = 'm'
	fieldJSON   fieldKind = 'j'
	fieldLogfmt fieldKind = 'f'
)

func parseField(s string) (field, error) {
	switch s {
	case "line":
		return field{kind: fieldLine}, nil
	case "time":
		return field{kind: fieldTime}, nil
	case "ts":
		return field{kind: fieldTS}, nil
	case "":
		return field{}, fmt.Errorf("cannot use an empty field: %s", fieldNames)
	}
	head, name, dotted := strings.Cut(s, ".")
	if !dotted && !strings.ContainsFunc(s, func(r rune) bool { return !isWord(r) }) {
		return field{kind: fieldLabel, name: s}, nil
	}
	switch head {
	case "labels":
		return field{kind: fieldLabel, name: name}, nil
	case "meta", "metadata":
		return field{kind: fieldMeta, name: name}, nil
	case "json":
		return jsonField(name)
	case "logfmt":
		return logfmtField(name)
	}
	return field{}, fmt.Errorf("cannot use field %q: %s", s, fieldNames)
}

func isWord(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

const fieldNames = "there is line, time, ts, a label such as app or labels.app, meta.trace_id, json.user.id and logfmt.level"

func jsonField(path string) (field, error) {
	p, ok := scan.CutPath(path)
	if !ok {
		return field{}, fmt.Errorf("cannot use path %q: it has more than %d names", path, scan.MaxPath)
	}
	return field{kind: fieldJSON, name: path, path: p}, nil
}

func logfmtField(key string) (field, error) {
	if !scan.IsLogfmtKey(key) {
		return field{}, fmt.Errorf("cannot use %q as a key of logfmt: it has no spaces, quotes and equals signs", key)
	}
	return field{kind: fieldLogfmt, name: key}, nil
}

// Projection is a list of fields of each record, in the order of their names,
// as passed to a projected callback. A line is parsed once for all its JSON
// fields and once for all its logfmt fields. A Projection belongs to one VM.
type Projection struct {
	use
	slots  []field
	order  []int // the slot of each named field
	json   scan.Fields
	logfmt scan.Logfmt
	values []Value
	cols   []*Column // of labels; nil for other fields
}

// maxFields is the maximum number of fields in a Projection.
const maxFields = 32

// newProjection returns a projection. The caller sets the columns of its
// labels.
func newProjection(fields []field) *Projection {
	p := &Projection{}
next:
	for _, f := range fields {
		for i, have := range p.slots {
			if have.kind == f.kind && have.name == f.name {
				p.order = append(p.order, i)
				continue next
			}
		}
		slot := len(p.slots)
		p.order = append(p.order, slot)
		p.slots = append(p.slots, f)
		switch f.kind {
		case fieldJSON:
			p.json.Add(f.path, slot)
		case fieldLogfmt:
			p.logfmt.Add(f.name, slot)
		}
	}
	p.values = make([]Value, len(p.slots))
	p.cols = make([]*Column, len(p.slots))
	return p
}

// Len returns the number of named fields.
func (p *Projection) Len() int { return len(p.order) }

// read sets the values to those of row i.
func (p *Projection) read(m *Logs, i int) {
	clear(p.values)
	if p.json.Len() > 0 {
		p.json.Find(m.line.rows[i], p.values)
	}
	if p.logfmt.Len() > 0 {
		p.logfmt.Find(m.line.rows[i], p.values)
	}
}

// Cell is a field of a record. Exactly one of its fields is set.
type Cell struct {
	// Fixed points to immutable text. It is nil if the field is in Value.
	Fixed *string
	Value Value
}

// cellAt returns a field of row i. read must have been called for the row.
func (p *Projection) cellAt(m *Logs, i, k int) Cell {
	slot := p.order[k]
	switch f := &p.slots[slot]; f.kind {
	case fieldLabel:
		return Cell{Fixed: p.cols[slot].At(m.Stream(i))}
	case fieldLine:
		if !m.line.own {
			return Cell{Fixed: &m.line.rows[i]}
		}
		return Cell{Value: Value{Kind: Text, Text: m.line.rows[i]}}
	case fieldMeta:
		if v := m.MetaValue(i, f.name); v != "" {
			return Cell{Value: Value{Kind: Text, Text: v}}
		}
		return Cell{}
	case fieldTime:
		return Cell{Value: Value{Kind: Number, Num: float64(m.Time(i))}}
	case fieldTS:
		return Cell{Value: Value{Kind: Text, Text: m.TS(i)}}
	}
	return Cell{Value: p.values[slot]}
}
