package lua

import (
	"cmp"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// stage says which code of the script runs.
type stage uint8

const (
	outside  stage = iota // none
	loading               // the file, for its definition
	inSeries              // a hook whose answer is remembered: it has no effects besides
	inHook                // another hook, or a plain file
	inEach                // a callback of each, called by a hook
)

// The names of stages that are not hooks, as errors give them.
const (
	hookLoad  = "load"
	hookPlain = "main"
	hookEach  = "each"
)

// activeCall is the call into a VM that runs: its stage, what the script may read,
// and where the records that it emits go.
type activeCall struct {
	params *scripting.Call // its limits and times; nil before the first call
	stage  stage
	hook   string // as errors name it

	series  *view.Series  // in the stage inSeries
	metrics *view.Metrics // in a hook that gets samples
	logs    *view.Logs    // in a hook that gets lines

	outMetrics    *view.Metrics // where ctx.emit adds samples, nil if it cannot
	outLogs       *view.Logs    // where ctx.emit adds lines, nil if it cannot
	emissionsLeft int           // records that may still be emitted

	failure lastFailure
}

// enter changes from outside to another stage.
func (c *activeCall) enter(s stage, hook string) { c.stage, c.hook = s, hook }

// leave changes to outside and forgets the input and the output of the hook.
func (c *activeCall) leave() {
	c.enter(outside, "")
	c.series, c.metrics, c.logs, c.outMetrics, c.outLogs = nil, nil, nil, nil, nil
}

// enterEach changes from inHook to inEach and returns the name of the hook for
// leaveEach. It reports false if a callback of each runs already.
func (c *activeCall) enterEach() (hook string, ok bool) {
	if c.stage == inEach {
		return "", false
	}
	hook = c.hook
	c.enter(inEach, hookEach)
	return hook, true
}

func (c *activeCall) leaveEach(hook string) { c.enter(inHook, hook) }

// canEmit reports whether ctx.emit and ctx.route can be used.
func (c *activeCall) canEmit() bool { return c.outMetrics != nil || c.outLogs != nil }

// takeEmission counts a record that is emitted. It reports false if there are too
// many.
func (c *activeCall) takeEmission() bool {
	c.emissionsLeft--
	return c.emissionsLeft >= 0
}

// lastFailure is the last error that a function of the standard library returned
// to the script. It explains a nil that the script meets later.
type lastFailure struct {
	text   string // in this call, or while the file was loaded
	inLoad string // while the file was loaded
}

func (f *lastFailure) record(text string, loading bool) {
	f.text = text
	if loading {
		f.inLoad = text
	}
}

// restart forgets the failures of the previous call.
func (f *lastFailure) restart() { f.text = f.inLoad }

// Begin starts a call.
func (v *vm) Begin(c *scripting.Call) {
	v.call.params = c
	v.budget.sampler = v.newSampler(c.Profile)
	v.budget.heap.start(cmp.Or(c.Memory, scripting.DefaultMemory))
	v.budget.heap.setting = ", the limit is script.limits.memory"
	v.startLimits()
	v.call.failure.restart()
}

// startLimits starts the limits of the call, also after a wait if the call asks
// for that.
func (v *vm) startLimits() {
	c := v.call.params
	v.budget.start(c.Time+time.Duration(c.Records)*timePerRecord, c.Records)
	v.budget.clock.setting = ", the limit is script.limits.time"
	v.call.emissionsLeft = c.Emit
}

// pause is called before a function that waits, and resume after it.
func (v *vm) pause() error {
	if v.call.params == nil || v.call.params.Pause == nil {
		return nil
	}
	return v.call.params.Pause()
}

func (v *vm) resume() {
	v.budget.resume()
	if v.call.params != nil && v.call.params.Resume != nil && v.budget.tripped == nil && v.call.params.Resume() {
		v.startLimits()
	}
}

// timePerRecord is added to a call's time for each record of its batch.
const timePerRecord = 20 * time.Microsecond

// Series asks the hook series about a series.
func (v *vm) Series(s *view.Series) error {
	return v.askAbout(s, "series", v.hooks.series, v.args.series)
}

// Stream asks the hook stream about a stream.
func (v *vm) Stream(s *view.Stream) error {
	return v.askAbout(s, "stream", v.hooks.stream, v.args.stream)
}

// askAbout calls a hook whose answer is remembered.
func (v *vm) askAbout(s *view.Series, name string, hook *lua.LFunction, handle *lua.LUserData) error {
	v.call.enter(inSeries, name)
	v.call.series = s
	err := v.runFunction(hook, 0, handle, v.args.ctx.series)
	v.call.leave()
	return err
}

// Metrics calls the hook that gets samples.
func (v *vm) Metrics(m *view.Metrics) error {
	v.call.enter(inHook, v.prog.batchHook("metrics"))
	v.call.metrics, v.call.outLogs = m, v.call.params.Logs
	if v.prog.def.Sends&batch.SignalMetrics != 0 {
		v.call.outMetrics = m
	}
	err := v.runFunction(v.hooks.metrics, 0, v.args.batch, v.args.ctx.metrics)
	v.call.leave()
	v.handles.records = nil
	return err
}

// Logs calls the hook that gets lines.
func (v *vm) Logs(m *view.Logs) error {
	v.call.enter(inHook, v.prog.batchHook("logs"))
	v.call.logs, v.call.outMetrics = m, v.call.params.Metrics
	if v.prog.def.Sends&batch.SignalLogs != 0 {
		v.call.outLogs = m
	}
	err := v.runFunction(v.hooks.logs, 0, v.args.logBatch, v.args.ctx.metrics)
	v.call.leave()
	v.handles.lines = nil
	v.values.texts.Forget() // parts of lines, which would keep the whole lines in memory
	clear(v.handles.cells[:cap(v.handles.cells)])
	v.handles.spareCall.Forget()
	return err
}

// batchHook returns the name of the hook that gets batches of a signal.
func (p *program) batchHook(signal string) string {
	if p.def.Kind == scripting.Sink {
		return "send"
	}
	return signal
}

// Run calls another hook of the definition.
func (v *vm) Run(h *scripting.Hook) (scripting.Value, error) {
	v.call.enter(inHook, h.Name)
	v.call.outMetrics, v.call.outLogs = h.Metrics, h.Logs
	defer func() {
		v.call.leave()
		v.handles.records = nil
	}()
	fn := function(v.raw, h.Name, h.Key)
	if h.Args == nil {
		return nil, v.runFunction(fn, 0, v.args.ctx.metrics)
	}
	var out scripting.Value
	// Under the handler: an argument or a result that is too large is an error
	// of the script.
	err := v.runFunction(v.L.NewFunction(func(L *lua.LState) int {
		L.Push(fn)
		for _, x := range h.Args {
			L.Push(v.fromGo(L, x, 0))
		}
		L.Push(v.args.ctx.metrics)
		L.Call(len(h.Args)+1, 1)
		out = v.toGo(L, L.Get(-1), 0)
		return 0
	}), 0)
	return out, err
}
