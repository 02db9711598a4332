package set

import (
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

var logWindows = sync.Pool{New: func() any { return new(view.Logs) }}

// linesCall is the state of a call for one batch of log lines.
type linesCall struct {
	*programs
	once
	b      *batch.Logs
	w      *view.Logs
	failed *clause.Batch
}

// applyLogs is apply for log lines.
func (r *rules) applyLogs(b *batch.Logs, now time.Time, failed *clause.Batch) *batch.Logs {
	if r.lines == nil {
		return b
	}
	w := logWindows.Get().(*view.Logs)
	defer logWindows.Put(w)
	w.Reset(b, r.cache, now)
	defer w.Done()
	k := &linesCall{programs: r.lines, once: once{edits: r.lines.series, column: b.Stream, add: failed.AddLine}, b: b, w: w, failed: failed}
	if !k.run(&w.Window) {
		return b
	}
	if len(k.rows) > 0 || k.line != nil {
		for i := range b.Stream {
			if !k.failedOn(i) {
				k.row(i)
			}
		}
	}
	return w.Apply().Batch
}

// row changes one line, or leaves it unchanged if an expression fails.
func (k *linesCall) row(i int) {
	clause.FillLine(&k.x, k.b, i)
	k.w.Mark(i)
	if argument, err := k.edit(i); err != nil {
		k.w.Rollback()
		k.failed.AddLine(argument, k.b.Stream[i], err)
	}
}

func (k *linesCall) edit(i int) (argument string, err error) {
	for _, e := range k.rows {
		text, err := e.prog.Text(&k.x)
		switch {
		case err != nil:
		case e.argument == argumentMeta:
			err = k.w.SetMeta(i, e.label, text)
		default:
			err = k.w.SetLabel(i, e.label, text)
		}
		if err != nil {
			return e.argument, err
		}
	}
	if k.line == nil {
		return "", nil
	}
	text, err := k.line.Text(&k.x)
	if err == nil {
		k.w.SetLine(i, text)
	}
	return "line", err
}
