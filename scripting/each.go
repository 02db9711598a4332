package scripting

import "github.com/weir-run/weir/engine/view"

// Rows iterates over the rows of a batch for a script. If the script fails on a
// row, the changes to that row and the records emitted for it are undone, and
// nothing else. A language calls Each in a call that catches errors, passes an
// error to Fail, and calls Each again for the remaining rows.
type Rows struct {
	window *view.Window
	batch  MarkedBatch
	// The batches for emitted records; nil if the hook cannot emit.
	metrics *view.Metrics
	logs    *view.Logs

	row            int // the current row
	samples, lines int // numbers of emitted records when it began
}

// MarkedBatch is *view.Metrics or *view.Logs.
type MarkedBatch interface {
	Mark(row int)
	Rollback()
	RowText(row int) string
}

// RowsOf returns the rows of w, the window of b. The hook emits to metrics and
// logs, which may be nil.
func RowsOf(w *view.Window, b MarkedBatch, metrics *view.Metrics, logs *view.Logs) *Rows {
	return &Rows{window: w, batch: b, metrics: metrics, logs: logs, row: -1}
}

// Each calls step for each remaining row.
func (r *Rows) Each(step func(row int)) {
	for r.row = r.window.Next(r.row + 1); r.row >= 0; r.row = r.window.Next(r.row + 1) {
		r.batch.Mark(r.row)
		if r.metrics != nil {
			r.samples = r.metrics.Emitted()
		}
		if r.logs != nil {
			r.lines = r.logs.Emitted()
		}
		step(r.row)
	}
}

// Fail undoes the changes to the current row, on which e occurred, and reports
// e to the call.
func (r *Rows) Fail(c *Call, e *Error) {
	r.batch.Rollback()
	if r.metrics != nil {
		r.metrics.Unemit(r.samples)
	}
	if r.logs != nil {
		r.logs.Unemit(r.lines)
	}
	e.Record = r.batch.RowText(r.row)
	if c.Failed(r.row, e) {
		r.window.Drop(r.row)
	}
}
