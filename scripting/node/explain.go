package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

var _ component.Explainer = (*Component)(nil)

// Explain returns the lines of the script that change or drop the record. A copy of the
// node, with a copy of its state, processes the record without effect.
func (c *Component) Explain(ctx context.Context, one flow.Batches) ([]component.Step, error) {
	now := stopped{c.opts.Clock, c.opts.Clock.Now()}
	r, err := c.newRehearsal(ctx, c.script, c.args, rehearsalOptions{what: "weir why", clock: now, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("cannot start a copy of the script: %w", err)
	}
	defer r.close()
	t, ok := r.c.kind.(*transform)
	if !ok {
		return nil, fmt.Errorf("%s does not send on the records that it receives", c.script.Name)
	}
	x := &explanation{on: c.block.OnError}
	if len(one.Logs) > 0 {
		b := *one.Logs[0]
		b.Ack = nil // nothing is delivered
		err = explainBatch(ctx, x, t.logs, &b)
	} else {
		err = explainBatch(ctx, x, t.metrics, one.Metrics[0])
	}
	if err != nil {
		return nil, err
	}
	if refused := slices.Sorted(maps.Values(r.outside.refused)); len(refused) > 0 {
		return nil, fmt.Errorf("the script needs an answer to %s, and the node has no recent one", refused[0])
	}
	return x.steps, nil
}

func explainBatch[B records](ctx context.Context, x *explanation, p pipeline[B], b B) error {
	if p.c.script.Definition.Accepts()&p.signal.bit() == 0 {
		return errors.New("the script does not process records of this signal")
	}
	x.of = p.signal.bit()
	r, err := p.rehearse(ctx, b, x)
	if err != nil {
		return err
	}
	r.close()
	return context.Cause(ctx)
}

// explanation follows the edits that a script makes to a batch of one record. Its
// methods do nothing if it is nil.
type explanation struct {
	on    scripting.OnError
	of    batch.Signals // of the record
	k     *call
	steps []component.Step

	open   bool           // an edit has begun
	step   component.Step // of this edit
	file   scripting.File // of step
	line   int
	before *explainedState // before step
	undone bool            // the changes to the record have been undone because of an error
	drops  bool            // the next edit drops the record because of the last error
}

// explainedState is the record in the middle of a call.
type explainedState struct {
	row            flow.Batches // has no row if the record was dropped
	way            int          // of the record
	samples, lines int          // emitted so far
}

// onError returns the handling of errors. The copy of a node has no quarantine.
func (x *explanation) onError() scripting.OnError {
	if x != nil && x.on == scripting.OnErrorPass {
		return scripting.OnErrorPass
	}
	return scripting.OnErrorDrop
}

// begin begins to follow the edits of a call.
func (x *explanation) begin(k *call) {
	if x != nil {
		x.k = k
		k.w.win.Trace(x.edit)
		k.w.lines.Trace(x.edit)
	}
}

// end ends it.
func (x *explanation) end() {
	if x != nil {
		x.k.w.win.Trace(nil)
		x.k.w.lines.Trace(nil)
	}
}

// finish adds the last edit when the result of the call is known.
func (x *explanation) finish() {
	if x != nil {
		x.close()
	}
}

// edit is called before each edit, and before the changes to the record are undone.
func (x *explanation) edit(undo bool) {
	if undo {
		x.close()
		x.undone = true
		return
	}
	if x.drops {
		x.drops = false
		return
	}
	file, line := x.k.w.vm.Position()
	if x.open && x.step.Kind == "line" && x.line == line && x.file.Name == file.Name {
		return // such as a loop over labels
	}
	x.close()
	x.start(file, line, component.Step{Kind: "line", Detail: file.Error(line, "", nil).Source})
}

// failed is called with an error of the script.
func (x *explanation) failed(e *scripting.Error) {
	if x == nil {
		return
	}
	if !x.undone {
		x.close()
	}
	x.undone = false
	x.start(scripting.File{Name: e.File}, e.Line, component.Step{Kind: component.StepError, Detail: e.Err.Error()})
	x.drops = x.onError() == scripting.OnErrorDrop
	if x.on.Stores() {
		x.step.Also = []string{"the record goes to the quarantine, or is held"}
	}
}

// start starts a step.
func (x *explanation) start(file scripting.File, line int, s component.Step) {
	s.Name = file.Name
	if line > 0 {
		s.Name = fmt.Sprintf("%s:%d", file.Name, line)
	}
	x.open, x.step, x.file, x.line = true, s, file, line
}

// close adds the step that has begun if it had an effect.
func (x *explanation) close() {
	was := x.before
	if was == nil {
		was = &explainedState{}
	}
	now := x.state(was)
	x.before = now
	if !x.open {
		return
	}
	x.open = false
	s := x.step
	s.After, s.Added = now.row, x.added(was)
	if now.way != was.way && now.way > 0 && now.way <= len(x.k.c.script.Definition.Outputs) {
		s.Also = append(s.Also, "sent to the output "+x.k.c.script.Definition.Outputs[now.way-1])
	}
	if s.Kind == component.StepError || len(s.Also) > 0 || s.Added.Len() > 0 || !x.same(was.row, now.row) {
		x.steps = append(x.steps, s)
	}
}

// state returns the record as it is now.
func (x *explanation) state(was *explainedState) *explainedState {
	now := &explainedState{samples: was.samples, lines: was.lines}
	w := x.k.w
	if x.k.opened&batch.SignalMetrics != 0 {
		rows, _ := w.win.Snapshot(0)
		now.samples = w.win.Emitted()
		if x.of == batch.SignalMetrics {
			now.row.Metrics = []*batch.Metrics{rows}
			now.way = wayOfFirst(&w.win.Window)
		}
	}
	if x.k.opened&batch.SignalLogs != 0 {
		rows, _ := w.lines.Snapshot(0)
		now.lines = w.lines.Emitted()
		if x.of == batch.SignalLogs {
			now.row.Logs = []*batch.Logs{rows}
			now.way = wayOfFirst(&w.lines.Window)
		}
	}
	return now
}

func wayOfFirst(w *view.Window) int {
	if w.Len() == 0 {
		return 0
	}
	way, _ := w.WayOf(0)
	return way
}

// added returns the records that were emitted since was.
func (x *explanation) added(was *explainedState) (out flow.Batches) {
	w := x.k.w
	if x.k.opened&batch.SignalMetrics != 0 && w.win.Emitted() > was.samples {
		_, added := w.win.Snapshot(was.samples)
		out.Metrics = append(out.Metrics, added)
	}
	if x.k.opened&batch.SignalLogs != 0 && w.lines.Emitted() > was.lines {
		_, added := w.lines.Snapshot(was.lines)
		out.Logs = append(out.Logs, added)
	}
	return out
}

// same compares two states of the record.
func (x *explanation) same(a, b flow.Batches) bool {
	if a.Len() != b.Len() {
		return false
	}
	if a.Len() == 0 {
		return true
	}
	if x.of == batch.SignalLogs {
		return logsSignal{}.same(a.Logs[0], 0, b.Logs[0], 0)
	}
	return metricsSignal{}.same(a.Metrics[0], 0, b.Metrics[0], 0)
}
