package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// promotion is a value that becomes a label of a stream.
type promotion struct {
	stream       *batch.Stream
	label, value string
}

// Promote sets a label of each row to the value of one of its fields; see field
// for the names. Rows without the field do not change.
func (m *Logs) Promote(from, label string) error {
	m.traceEdit()
	f, err := parseField(from)
	if err != nil {
		return err
	}
	if f.kind == fieldLabel {
		return fmt.Errorf("cannot promote %q: say where it stands: json.%s, logfmt.%s or meta.%s; a label is renamed, not promoted", from, f.name, f.name, f.name)
	}
	if err := checkLabelName(label, true); err != nil {
		return err
	}
	p, err := m.Projection("", []string{from})
	if err != nil {
		return err
	}
	m.flush()
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		p.read(m, i)
		value := p.cellAt(m, i, 0).text()
		if value == "" {
			continue
		}
		if err := m.setRowLabel(i, label, value); err != nil {
			return err
		}
	}
	return nil
}

// setRowLabel sets a label of row i. The result for a value and a stream is
// computed once per batch, because a batch has few of both.
func (m *Logs) setRowLabel(i int, label, value string) error {
	s := m.series.rows[i]
	k := promotion{s, label, value}
	d, ok := m.promoted[k]
	if !ok {
		if err := checkLabelValue(label, value); err != nil {
			return err
		}
		m.edit.Reset(s)
		m.edit.Set(label, value)
		if err := m.chargeRows(1, len(label)+len(value)); err != nil {
			return err
		}
		d, _ = m.cache.derive(s, &m.edit, m.now)
		if m.promoted == nil {
			m.promoted = map[promotion]*batch.Stream{}
		}
		m.promoted[k] = d
	}
	if d != s {
		m.series.write()[i] = d
	}
	return nil
}

// text returns the cell as text for a label, metadata or a line. A missing
// value is "".
func (c Cell) text() string {
	if c.Fixed != nil {
		return *c.Fixed
	}
	if c.Value.Kind == Number && c.Value.Text == "" {
		return strconv.FormatInt(int64(c.Value.Num), 10) // time
	}
	return c.Value.Text
}

// template is a text with fields in braces.
type template struct {
	texts  []string // the texts before, between and after the fields
	fields []field
	proj   *Projection
}

// maxTemplate is the maximum length of a template, in bytes.
const maxTemplate = 64 << 10

func parseTemplate(src string) (*template, error) {
	if len(src) > maxTemplate {
		return nil, fmt.Errorf("cannot use a template of %d bytes: the limit is %d", len(src), maxTemplate)
	}
	t := &template{}
	text := ""
	for i := 0; i < len(src); i++ {
		c := src[i]
		if (c == '{' || c == '}') && i+1 < len(src) && src[i+1] == c {
			text += src[i : i+1]
			i++
			continue
		}
		switch c {
		case '{':
			end := strings.IndexByte(src[i:], '}')
			if end < 0 {
				return nil, fmt.Errorf("cannot use template %q: the brace at %d is not closed; a brace of the text is written {{", src, i+1)
			}
			f, err := parseField(strings.TrimSpace(src[i+1 : i+end]))
			if err != nil {
				return nil, fmt.Errorf("cannot use template %q: %w; a brace of the text is written {{", src, err)
			}
			t.texts, t.fields, text = append(t.texts, text), append(t.fields, f), ""
			i += end
		case '}':
			return nil, fmt.Errorf("cannot use template %q: the brace at %d closes nothing; one of the text is written }}", src, i+1)
		default:
			text += src[i : i+1]
		}
	}
	t.texts = append(t.texts, text)
	if len(t.fields) > maxFields {
		return nil, fmt.Errorf("cannot use a template with %d fields: the limit is %d", len(t.fields), maxFields)
	}
	t.proj = newProjection(t.fields)
	return t, nil
}

// SetLineAll sets the line of each row to a template: a text with fields in
// braces, such as "{labels.app}: {json.msg}"; see field for the names. A
// missing field becomes an empty text. {{ and }} stand for braces.
func (m *Logs) SetLineAll(src string) error {
	m.traceEdit()
	t, ok := m.templates[src]
	if !ok {
		var err error
		if t, err = parseTemplate(src); err != nil {
			return err
		}
		if len(m.templates) < m.cache.opts.MaxMemos {
			m.templates[src] = t
		}
	}
	for i, f := range t.proj.slots {
		if f.kind == fieldLabel {
			t.proj.cols[i] = m.Column("labels." + f.name)
		}
	}
	m.flush()
	m.text, m.ends = m.text[:0], m.ends[:0]
	from := 0
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		t.proj.read(m, i)
		for k, text := range t.texts {
			m.text = append(m.text, text...)
			if k < len(t.fields) {
				m.text = append(m.text, t.proj.cellAt(m, i, k).text()...)
			}
		}
		if err := m.chargeRows(1, len(m.text)-from); err != nil {
			return err
		}
		from = len(m.text)
		m.ends = append(m.ends, len(m.text))
	}
	if len(m.ends) == 0 {
		return nil
	}
	// All lines share one block of memory.
	text, from := string(m.text), 0
	lines := m.line.write()
	k := 0
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		lines[i] = text[from:m.ends[k]]
		from = m.ends[k]
		k++
	}
	if cap(m.text) > maxScratch {
		m.text = nil
	}
	return nil
}

// maxScratch is the maximum size of the scratch memory that is kept after an
// operation.
const maxScratch = 1 << 20
