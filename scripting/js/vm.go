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
	walked  time.Duration // duration of the last memory measurement
	call    *scripting.Call
	broken  bool
	rooted  rooted // used while goja's profiler runs

	intrinsics intrinsics
	loaded     map[*chunk]*goja.Object // module objects by file
	libs       map[string]*goja.Object // weir and the standard library
	protos     map[*scripting.ObjectType]*goja.Object
	thrown     [8]thrown // Go errors that are passed through the script
	threw      int
	rejected   []*goja.Promise // rejected promises without a handler
	statements int64           // that were executed and counted, see cover
	paused     *paused         // nil: no debugger
	prompt     *prompt         // nil until a person types a statement
	aside      bool            // it runs code that is not debugged

	hooks struct {
		series, metrics, stream, logs goja.Value
		all                           []goja.Value // of the definition
	}
	ctx struct{ series, metrics *goja.Object }
	raw *scripting.Raw // the export of the file

	// The current call:
	hook    string
	win     *view.Metrics // nil outside of the hook metrics
	out     *view.Metrics // ctx.emit appends to it; nil if not available
	emit    int           // records that may still be emitted
	lines   *view.Logs    // nil outside of the hook logs
	outLogs *view.Logs    // ctx.emit appends log records to it; nil if not available
	seen    *view.Series  // nil outside of the hooks series and stream

	// data contains the script-visible objects for batches; see view.go.
	data     data
	test     *test // nil except in the VM of a test file
	batch    goja.Value
	series   goja.Value
	stream   goja.Value
	logBatch goja.Value
}

// intrinsics are built-in functions, saved before a script runs.
type intrinsics struct {
	err, typeErr *goja.Object
	objectProto  *goja.Object
	freeze       goja.Callable
}

// loadTime is the time limit for running a file for its definition.
const loadTime = time.Second

// hookLoad is the hook of errors while the file is loaded.
const hookLoad = "load"

// newVM returns a VM with safe globals and without loaded files.
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
	v.budget.start(loadTime, 0) // objects that are created here are charged, too
	v.rt.SetPromiseRejectionTracker(v.track)
	v.openClock()
	v.openConsole()
	v.openData()
	v.openCover()
	v.openDebug()
	v.openArgs()
	if p.test != nil {
		p.test.open(v)
	}
	v.sandbox = newSandbox(v.rt, &v.budget)
	v.sandbox.kept = v.kept
	v.budget.held = v.sandbox.held
	return v
}

// load runs the file, which must export the result of a define function.
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

// try runs fn, which runs the script, and returns its error: an error of goja,
// or a Go panic in a host function, which is a bug in weir.
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

// run calls a hook and returns its result, or for an async hook the result of
// its promise.
func (v *vm) run(fn goja.Value, args ...goja.Value) (goja.Value, error) {
	return v.runWith(fn, nil, args...)
}

// runWith is like run, and calls returned with the direct result of the hook,
// which is a promise for an async hook.
func (v *vm) runWith(fn goja.Value, returned func(goja.Value), args ...goja.Value) (goja.Value, error) {
	call, ok := goja.AssertFunction(fn)
	if !ok {
		panic(fmt.Sprintf("BUG: hook %s is no function", v.hook))
	}
	if v.call != nil && (v.call.Profile != nil || profiling.running.Load()) {
		call, args = v.rooted.call(v, v.call.Profile, fn, args)
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

// invoke calls a function of the script from a host function. The error is an
// exception of the function; raise throws it again.
func (v *vm) invoke(fn goja.Callable, args ...goja.Value) (goja.Value, error) {
	return fn(goja.Undefined(), args...)
}

// Begin starts a call.
func (v *vm) Begin(c *scripting.Call) {
	v.call = c
	v.budget.memory(cmp.Or(c.Memory, scripting.DefaultMemory), ", the limit is script.limits.memory")
	v.startLimits()
}

// startLimits restarts the limits of a call, also after a wait if the call
// allows it.
func (v *vm) startLimits() {
	c := v.call
	v.budget.start(c.Time+time.Duration(c.Records)*timePerRecord, c.Records)
	v.budget.setting = ", the limit is script.limits.time"
	v.emit = c.Emit
}

// pause is called before a function that waits, resume after it.
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

// timePerRecord is added to a call's time limit for each record of its batch.
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

// batchHook returns the name of the hook for batches of a signal.
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

// function returns a function of the definition: key in the table name, or name
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

// openHooks reads the hooks from the definition and creates their arguments.
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

// kept yields the hooks and the modules. Their closures contain the variables
// of files, which are not reachable from the runtime between calls.
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

// hookLine returns the line of the current hook in the definition, or 0 if
// there is none.
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

// callerPosition returns the position in the script that called the host. c is
// nil if there is none.
func (v *vm) callerPosition() (c *chunk, line, col int) {
	for _, f := range v.rt.CaptureCallStack(0, nil) {
		if c := v.prog.files[f.SrcName()]; c != nil {
			at := f.Position()
			return c, at.Line, at.Column
		}
	}
	return nil, 0, 0
}

// Position returns the line that called the host.
func (v *vm) Position() (f scripting.File, line int) {
	if c, line, _ := v.callerPosition(); c != nil {
		return c.file, line
	}
	return v.prog.main.file, 0
}

// log passes on a log line of the script.
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
