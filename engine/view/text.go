package view

import (
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// maxRowText is the maximum length of a row's text form in messages, in bytes.
const maxRowText = 300

// Text returns the rows that are not dropped, as edited, in text form.
func (m *Metrics) Text() []byte {
	out := &batch.Metrics{}
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		m.appendRow(out, i)
	}
	return batch.AppendText(nil, out)
}

// RowText returns row i as edited in text form, on one line and shortened to
// fit a message. It returns "" if there is no such row.
func (m *Metrics) RowText(i int) string {
	if i < 0 || i >= m.Len() {
		return ""
	}
	out := &batch.Metrics{}
	m.appendRow(out, i)
	var line string
	for l := range strings.Lines(string(batch.AppendText(nil, out))) {
		if !strings.HasPrefix(l, "#") {
			line = l
		}
	}
	return shorten(line)
}

// RowText returns row i as edited in text form, shortened to fit a message. It
// returns "" if there is no such row.
func (m *Logs) RowText(i int) string {
	if i < 0 || i >= m.Len() {
		return ""
	}
	return shorten(string(m.Text(nil, i)))
}

func shorten(line string) string {
	line = strings.TrimSpace(line)
	if len(line) > maxRowText {
		line = strings.ToValidUTF8(line[:maxRowText-3], "") + "…"
	}
	return line
}

func (m *Metrics) appendRow(out *batch.Metrics, i int) {
	row := len(out.Series)
	out.Series = append(out.Series, m.Series(i))
	out.T = append(out.T, m.t.rows[i])
	out.V = append(out.V, m.v.rows[i])
	if h, ok := m.Histogram(i); ok {
		h.Row = row
		out.Histograms = append(out.Histograms, h)
	}
	for _, e := range m.Exemplars(i) {
		e.Row = row
		out.Exemplars = append(out.Exemplars, e)
	}
	if t, ok := m.Start(i); ok {
		out.Starts = append(out.Starts, batch.Start{Row: row, T: t})
	}
}
