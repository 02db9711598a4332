package tap

import (
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// Call is a line in the format calls. Secrets are masked.
type Call struct {
	Kind  string    `json:"kind"` // "call"; other kinds are those of a Note
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// In is the input in the text form of batches, with all timestamps.
	In string `json:"in"`
	// Out is the output, in the same form. It is empty if Partial is set.
	Out string `json:"out"`
	// Partial means that the input has more records, which Where did not select.
	Partial bool `json:"partial,omitempty"`
	// Outside is the number of records that the node sent outside of calls since the
	// previous Call.
	Outside int `json:"outside,omitempty"`
}

// appendWholeCall appends a call in the format calls. A call is never shortened: if its
// input has more records than the rest of the second allows, it is left out.
func (p *Printer) appendWholeCall(dst []byte, o flow.Tapped) []byte {
	if len(o.In.Metrics)+len(o.In.Logs) == 0 {
		for range rowsOf(o.Out) {
			p.outside++
		}
		return dst
	}
	in, selected, total := p.selected(o.In)
	switch {
	case selected == 0 || p.Full():
		return dst
	case selected > p.budget:
		p.leftOut += selected
		return dst
	}
	p.budget -= selected
	p.written++
	c := Call{Kind: "call", Began: o.Began.UTC(), Ended: o.Time.UTC(), In: p.batchText(in), Partial: selected < total, Outside: p.outside}
	p.outside = 0
	if !c.Partial {
		c.Out = p.batchText(o.Out)
	}
	return appendEvent(dst, c)
}

// selected returns the records that Where selects, their number, and the number of all.
func (p *Printer) selected(b flow.Batches) (out flow.Batches, selected, total int) {
	choose := func(of flow.Batches) (rows []int) {
		for r := range rowsOf(of) {
			total++
			if p.matches(r) {
				rows = append(rows, r.i)
			}
		}
		selected += len(rows)
		return rows
	}
	for _, m := range b.Metrics {
		out.Metrics = append(out.Metrics, m.Rows(choose(flow.Batches{Metrics: []*batch.Metrics{m}})))
	}
	for _, l := range b.Logs {
		out.Logs = append(out.Logs, l.Rows(choose(flow.Batches{Logs: []*batch.Logs{l}})))
	}
	return out, selected, total
}

func (p *Printer) batchText(b flow.Batches) string {
	var text []byte
	for _, m := range b.Metrics {
		text = batch.AppendText(text, p.masks.metrics(m))
	}
	for _, l := range b.Logs {
		text = batch.AppendLogsText(text, p.masks.logs(l))
	}
	return string(text)
}
