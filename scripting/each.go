package scripting

import "github.com/weir-run/weir/engine/view"

// Rows are the rows of a batch, over which a script goes one at a time. An error
// undoes what was done to its row, and what was emitted meanwhile, and costs
// nothing else. A language runs Each in a call that catches errors, tells Fail
// of one, and calls Each again for the rows that are left.
type Rows struct {
	window *view.Window
	batch  MarkedBatch
	// Where the hook emits to; nil: nowhere.
	metrics *view.Metrics
	logs    *view.Logs

	row            int // the one at hand
	samples, lines int // that had been emitted when it began
}

// MarkedBatch is *view.Metrics or *view.Logs.
type MarkedBatch interface {
	Mark(row int)
	Rollback()
	RowText(row int) string
}

// RowsOf returns the rows of w, the window of b. metrics and logs are where the
// hook emits to; nil: nowhere.
func RowsOf(w *view.Window, b MarkedBatch, metrics *view.Metrics, logs *view.Logs) *Rows {
	return &Rows{window: w, batch: b, metrics: metrics, logs: logs, row: -1}
}

// Each calls step for each row that is left.
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

// Fail undoes the row at hand, which e is about, and tells the call.
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
