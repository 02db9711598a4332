package js

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// vm is one goja runtime with a component's program loaded.
type vm struct {
	rt      *goja.Runtime
	prog    *program
	host    scripting.Host
	budget  budget
	sandbox *sandbox
	walked  time.Duration // that the last look at what it holds took
	call    *scripting.Call
	broken  bool

	intrinsics intrinsics
	loaded     map[*chunk]*goja.Object // module objects by file
	libs       map[string]*goja.Object // weir and the standard library
	protos     map[*scripting.ObjectType]*goja.Object
	thrown     [8]thrown // Go errors on their way through the script
	threw      int
	rejected   []*goja.Promise // with nobody to tell
	statements int64           // that ran and were counted, see cover

	hooks struct {
		series, metrics, stream, logs goja.Value
		all                           []goja.Value // of the definition
	}
	ctx struct{ series, metrics *goja.Object }
	raw *scripting.Raw // what the file exports

	// The call at hand.
	hook    string
	win     *view.Metrics // nil outside of the hook metrics
	out     *view.Metrics // what ctx.emit adds to; nil where there is nothing
	emit    int           // records that may still be emitted
	lines   *view.Logs    // nil outside of the hook logs
	outLogs *view.Logs    // what ctx.emit adds log records to; nil where there is nothing
	seen    *view.Series  // nil outside of the hooks series and stream

	// data is what scripts see of batches: view.go makes it.
	data     data
	test     *test // nil but in a test file's VM
	batch    goja.Value
	series   goja.Value
	stream   goja.Value
	logBatch goja.Value
}

// intrinsics are functions of goja's own, taken before a script runs.
type intrinsics struct {
	err, typeErr *goja.Object
	objectProto  *goja.Object
	freeze       goja.Callable
}

// loadTime is what running a file for its definition may take.
const loadTime = time.Second

// hookLoad is what errors give as their hook while the file runs.
const hookLoad = "load"

// newVM returns a VM with safe globals and nothing loaded.
func (p *program) newVM(h scripting.Host) *vm {
	v := &vm{
		rt: goja.New(), prog: p, host: h,
		loaded: map[*chunk]*goja.Object{}, libs: map[string]*goja.Object{}, protos: map[*scripting.ObjectType]*goja.Object{},
	}
	g := v.rt.GlobalObject()
	object := g.Get("Object").(*goja.Object)
	v.intrinsics.err = g.Get("Error").(*goja.Object)
	v.intrinsics.typeErr = g.Get("TypeError").(*goja.Object)
	v.intrinsics.objectProto = object.Get("prototype").(*goja.Object)
	v.intrinsics.freeze, _ = goja.AssertFunction(object.Get("freeze"))
	v.budget.rt = v.rt
	v.budget.start(loadTime, 0) // what is made here is charged, too
	v.rt.SetPromiseRejectionTracker(v.track)
	v.openClock()
	v.openConsole()
	v.openData()
	v.openCover()
	v.openArgs()
	if p.test != nil {
		p.test.open(v)
	}
	v.sandbox = newSandbox(v.rt, &v.budget)
	v.sandbox.kept = v.kept
	v.budget.held = v.sandbox.held
	return v
}

// load runs the file, which must export what a define function returned.
func (v *vm) load() error {
	v.hook = hookLoad
	v.budget.memory(scripting.DefaultMemory, "")
	v.budget.start(loadTime, 0)
	var exported goja.Value
	err := v.try(func() error {
		m, err := v.module(v.prog.main)
		if err != nil {
			return err
		}
		exported = m
		if e, ok := m.(*goja.Object); ok && e.Get("default") != nil && !goja.IsUndefined(e.Get("default")) {
			exported = e.Get("default")
		}
		return nil
	})
	if err == nil {
		err = v.unheard()
	}
	if err != nil {
		return v.scriptError(err)
	}
	raw, ok := boxed(exported).(*scripting.Raw)
	if !ok {
		e := v.prog.main.file.Error(0, hookLoad, errors.New("cannot use a script that does not export its definition"))
		e.Hint = "write export default defineTransform({ … })"
		return e
	}
	v.raw = raw
	return nil
}

// try runs fn, which runs the script, and returns what went wrong: an error of
// goja's, or a Go panic in a host function, which is our bug.
func (v *vm) try(fn func() error) (err error) {
	v.budget.enter()
	defer v.budget.leave()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *goja.InterruptedError:
			err = r
		case *goja.StackOverflowError:
			err = r
		default:
			err = newPanicked(r, debug.Stack())
		}
	}()
	var inner error
	if ex := v.rt.Try(func() { inner = fn() }); ex != nil {
		return ex
	}
	return inner
}

// run calls a hook and returns what the promise of an async one came to.
func (v *vm) run(fn goja.Value, args ...goja.Value) (goja.Value, error) {
	return v.runWith(fn, nil, args...)
}

// runWith is run; returned is told what the hook returned, a promise mostly of an
// async one.
func (v *vm) runWith(fn goja.Value, returned func(goja.Value), args ...goja.Value) (goja.Value, error) {
	call, ok := goja.AssertFunction(fn)
	if !ok {
		panic(fmt.Sprintf("BUG: hook %s is no function", v.hook))
	}
	v.rejected = nil
	var out goja.Value
	err := v.try(func() (err error) {
		if out, err = call(goja.Undefined(), args...); err != nil {
			return err
		}
		if returned != nil {
			returned(out)
		}
		out, err = v.awaitPromise(out)
		return err
	})
	if err == nil {
		err = v.unheard()
	}
	if err == nil {
		err = v.budget.err()
	}
	if err != nil {
		return nil, v.scriptError(err)
	}
	return out, nil
}

// invoke calls a function of the script from a host function. Its error is what
// it threw; raise passes it on.
func (v *vm) invoke(fn goja.Callable, args ...goja.Value) (goja.Value, error) {
	return fn(goja.Undefined(), args...)
}

// Begin starts a call.
func (v *vm) Begin(c *scripting.Call) {
	v.call = c
	v.budget.memory(cmp.Or(c.Memory, scripting.DefaultMemory), ", the limit is script.limits.memory")
	v.startLimits()
}

// startLimits begins what counts anew after a wait, of a call that says so.
func (v *vm) startLimits() {
	c := v.call
	v.budget.start(c.Time+time.Duration(c.Records)*timePerRecord, c.Records)
	v.budget.setting = ", the limit is script.limits.time"
	v.emit = c.Emit
}

// pause is asked before a function that waits, resume told after it.
func (v *vm) pause() error {
	v.must(v.budget.pause())
	if v.call == nil || v.call.Pause == nil {
		return nil
	}
	return v.call.Pause()
}

func (v *vm) resume() {
	v.budget.resume()
	if v.call != nil && v.call.Resume != nil && v.budget.err() == nil && v.call.Resume() {
		v.startLimits()
	}
}

// timePerRecord is added to a call's time for each record of its batch.
const timePerRecord = 20 * time.Microsecond

// Broken reports whether the VM must not be used again.
func (v *vm) Broken() bool { return v.broken }

// Series runs the hook series.
func (v *vm) Series(s *view.Series) error {
	v.hook, v.seen = "series", s
	err := v.remembered(v.hooks.series, v.series)
	v.seen = nil
	return err
}

// Stream runs the hook stream.
func (v *vm) Stream(s *view.Stream) error {
	v.hook, v.seen = "stream", s
	err := v.remembered(v.hooks.stream, v.stream)
	v.seen = nil
	return err
}

// Metrics runs the hook metrics.
func (v *vm) Metrics(m *view.Metrics) error {
	v.hook, v.win, v.outLogs = v.batchHook("metrics"), m, v.call.Logs
	if v.prog.def.Sends&batch.SignalMetrics != 0 {
		v.out = m
	}
	_, err := v.run(v.hooks.metrics, v.batch, v.ctx.metrics)
	v.win, v.out, v.outLogs = nil, nil, nil
	v.closeData()
	return err
}

// Logs runs the hook logs.
func (v *vm) Logs(m *view.Logs) error {
	v.hook, v.lines, v.out = v.batchHook("logs"), m, v.call.Metrics
	if v.prog.def.Sends&batch.SignalLogs != 0 {
		v.outLogs = m
	}
	_, err := v.run(v.hooks.logs, v.logBatch, v.ctx.metrics)
	v.lines, v.out, v.outLogs = nil, nil, nil
	v.closeData()
	return err
}

// batchHook is the name of the hook that gets batches of a signal.
func (v *vm) batchHook(signal string) string {
	if v.prog.def.Kind == scripting.Sink {
		return "send"
	}
	return signal
}

// Run runs another hook.
func (v *vm) Run(h *scripting.Hook) (scripting.Value, error) {
	v.hook, v.out, v.outLogs = h.Name, h.Metrics, h.Logs
	defer func() {
		v.out, v.outLogs = nil, nil
		v.closeData()
	}()
	fn := v.function(h.Name, h.Key)
	args := make([]goja.Value, 0, len(h.Args)+1)
	err := v.try(func() error {
		for _, x := range h.Args {
			args = append(args, v.fromGo(x))
		}
		return nil
	})
	if err != nil {
		return nil, v.scriptError(err)
	}
	got, err := v.run(fn, append(args, v.ctx.metrics)...)
	if err != nil || h.Args == nil {
		return nil, err
	}
	var out scripting.Value
	if err := v.try(func() (err error) { out, err = v.toGo(got); return err }); err != nil {
		return nil, v.scriptError(err)
	}
	return out, nil
}

// End ends the call.
func (v *vm) End() error {
	v.ran()
	v.sandbox.parts.Forget()
	return v.retained()
}

// function finds a function of the definition: key in the table name, or name
// itself.
func (v *vm) function(name, key string) goja.Value {
	for _, f := range v.raw.Fields {
		if f.Name != name {
			continue
		}
		x := f.Value
		if m, ok := x.(map[string]any); ok {
			x = m[key]
		}
		if fn, ok := x.(scripting.Func); ok {
			return fn.Ref.(goja.Value)
		}
	}
	panic(fmt.Sprintf("BUG: there is no hook %s %q", name, key))
}

// openHooks takes the hooks out of the definition and makes what they are
// called with.
func (v *vm) openHooks() {
	for _, f := range v.raw.Fields {
		if m, ok := f.Value.(map[string]any); ok {
			for _, x := range m {
				if fn, ok := x.(scripting.Func); ok {
					v.hooks.all = append(v.hooks.all, fn.Ref.(goja.Value))
				}
			}
		}
		fn, ok := f.Value.(scripting.Func)
		if !ok {
			continue
		}
		hook := fn.Ref.(goja.Value)
		v.hooks.all = append(v.hooks.all, hook)
		switch f.Name {
		case "series":
			v.hooks.series = hook
		case "stream":
			v.hooks.stream = hook
		case "logs":
			v.hooks.logs = hook
		case "metrics":
			v.hooks.metrics = hook
		case "send":
			v.hooks.metrics, v.hooks.logs = hook, hook
		}
	}
	v.openContext()
}

// kept yields the hooks and the modules. Their closures hold the variables of files,
// to which nothing in the runtime leads between calls.
func (v *vm) kept(yield func(goja.Value) bool) {
	for _, fn := range v.hooks.all {
		if !yield(fn) {
			return
		}
	}
	for _, m := range v.loaded {
		if !yield(m) {
			return
		}
	}
}

// hookLine is the line of the hook at hand in the definition, 0 while there is
// none.
func (v *vm) hookLine() int {
	if v.raw == nil {
		return 0
	}
	name := v.hook
	for _, f := range v.raw.Fields {
		if f.Name == name {
			return f.Line
		}
	}
	return 0
}

// callerPosition is where the script is that called the host, nil when there is none.
func (v *vm) callerPosition() (c *chunk, line, col int) {
	for _, f := range v.rt.CaptureCallStack(0, nil) {
		if c := v.prog.files[f.SrcName()]; c != nil {
			at := f.Position()
			return c, at.Line, at.Column
		}
	}
	return nil, 0, 0
}

// log passes a line of the script on.
func (v *vm) log(level slog.Level, msg string, fields []any) {
	if v.host.Log == nil {
		return
	}
	pos := ""
	if c, line, _ := v.callerPosition(); c != nil {
		pos = c.file.Name + ":" + strconv.Itoa(line)
	}
	v.host.Log(level, pos, msg, fields)
}
