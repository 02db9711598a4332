package view

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/scan"
)

// field is a part of a log line's record, as rows, filter, promote and templates
// name them:
//
//	line  time  ts              the line, Unix ms, Unix ns as text
//	labels.app  meta.trace_id   a label, structured metadata
//	json.user.id  logfmt.level  what the line holds, read as JSON or logfmt
//
// A name without a dot that is none of these is a label.
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

// Projection is some fields of each record, in the order in which they were
// named: what a projected callback gets. A line is gone over once for all its
// JSON fields and once for all its logfmt fields. It is of one VM.
type Projection struct {
	use
	slots  []field
	order  []int // the slot of each field that was named
	json   scan.Fields
	logfmt scan.Logfmt
	values []Value
	cols   []*Column // of labels; nil for the others
}

// maxFields is how many fields a Projection may have.
const maxFields = 32

// newProjection returns a projection; the columns of its labels are set by who
// uses it.
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

// Len returns how many fields were named.
func (p *Projection) Len() int { return len(p.order) }

// read fills the values of row i.
func (p *Projection) read(m *Logs, i int) {
	clear(p.values)
	if p.json.Len() > 0 {
		p.json.Find(m.line.rows[i], p.values)
	}
	if p.logfmt.Len() > 0 {
		p.logfmt.Find(m.line.rows[i], p.values)
	}
}

// A Cell is a field of a record. Exactly one of its parts tells what it is.
type Cell struct {
	// Fixed is a text that is never written to, at an address that stays; nil
	// for what is in Value.
	Fixed *string
	Value Value
}

// cellAt returns a field of row i, for which read was called.
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
