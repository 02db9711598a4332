package lua

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

const (
	levelDebug = slog.LevelDebug
	levelInfo  = slog.LevelInfo
	levelWarn  = slog.LevelWarn
	levelError = slog.LevelError
)

// vm is one Lua state with a component's program loaded.
type vm struct {
	L      *lua.LState
	prog   *program
	host   scripting.Host
	budget budget
	call   *scripting.Call
	broken bool

	retention  retention
	trap       trap
	readOnly   readOnlyTables
	library    library
	modules    modules
	coroutines coroutines
	mt         metatables
	nullValue  *lua.LUserData

	numbers numbers
	texts   view.Texts
	parts   scripting.Parts

	loadFailed string // the same while the file ran

	hooks hookSet
	ctx   struct{ series, metrics *lua.LTable }
	raw   *scripting.Raw // set by weir.transform while the file runs

	// The call at hand.
	hook     string
	win      *view.Metrics // nil outside of the hook metrics
	out      *view.Metrics // what ctx.emit adds to; nil where there is nothing
	emit     int           // records that may still be emitted
	recs     []record      // handles not given out yet
	lines    *view.Logs    // nil outside of the hook logs
	outLogs  *view.Logs    // what ctx.emit adds log records to; nil where there is nothing
	lineRecs []line        // handles not given out yet
	cells    []view.Cell
	patterns scripting.Patterns
	cursor   *cursor // nil outside of an each with one

	projections map[*lua.FunctionProto]*projection // of callbacks; nil for those without one
	recordField func(L *lua.LState, m *view.Metrics, r *record, field lua.LValue) int
	batch       *lua.LUserData
	series      *lua.LUserData
	stream      *lua.LUserData
	logBatch    *lua.LUserData
	test        *test        // nil but in a test file's VM
	failed      string       // what a function of the standard library returned last, in this call or at load
	seen        *view.Series // nil outside of the hook series
}

// library are the functions and the global table that a script starts with.
type library struct {
	env        *lua.LTable               // the global table
	names      map[*lua.LFunction]string // names of functions, the same in every VM
	next       *lua.LFunction
	ipairsNext *lua.LFunction
}

// stack sizes: a VM starts small, 256 calls deep is gopher-lua's own limit, and
// 64k slots are a megabyte.
var stateOptions = lua.Options{
	CallStackSize: 256, RegistrySize: 256, RegistryMaxSize: 64 << 10, RegistryGrowStep: 256, SkipOpenLibs: true,
}

// loadTime is what running a file for its definition may take.
const loadTime = time.Second

// newVM returns a VM with safe globals and nothing loaded.
func (p *program) newVM(h scripting.Host) *vm {
	v := &vm{
		L: lua.NewState(stateOptions), prog: p, host: h,
		retention: newRetention(), modules: modules{},
		library:     library{names: map[*lua.LFunction]string{}},
		projections: map[*lua.FunctionProto]*projection{},
	}
	v.readOnly = readOnlyTables{L: v.L, behind: map[*lua.LTable]*lua.LTable{}}
	v.budget.held = v.held
	v.budget.heap.start(scripting.DefaultMemory)
	v.budget.start(loadTime, 0)
	v.L.SetContext(&v.budget)
	v.trap.open(v.L)
	v.library.ipairsNext = v.L.NewFunction(v.nextItem)
	v.openGlobals()
	v.openMetatables()
	return v
}

// openGlobals makes the global table from what is safe.
func (v *vm) openGlobals() {
	L := v.L
	lib := func(open lua.LGFunction, name string) *lua.LTable {
		L.Push(L.NewFunction(open))
		L.Call(0, 0)
		if name == "" {
			return L.G.Global
		}
		return L.GetGlobal(name).(*lua.LTable)
	}
	from := func(src *lua.LTable, names []string, own map[string]lua.LGFunction, prefix string) *lua.LTable {
		t := L.CreateTable(0, len(names)+len(own))
		for _, n := range names {
			f := src.RawGetString(n)
			t.RawSetString(n, f)
			if fn, ok := f.(*lua.LFunction); ok {
				v.library.names[fn] = prefix + n
			}
		}
		for n, g := range own {
			f := L.NewFunction(g)
			t.RawSetString(n, f)
			v.library.names[f] = prefix + n
		}
		return t
	}
	env := from(lib(lua.OpenBase, ""), fromBase, v.baseLib(), "")
	v.library.next = env.RawGetString("next").(*lua.LFunction)
	env.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	math_ := from(lib(lua.OpenMath, lua.MathLibName), fromMath, nil, "math.")
	math_.RawSetString("pi", lua.LNumber(math.Pi))
	math_.RawSetString("huge", lua.LNumber(math.Inf(1)))
	env.RawSetString("math", v.readOnly.freeze(math_, "math"))
	env.RawSetString("table", v.readOnly.freeze(from(nil, nil, v.tableLib(lib(lua.OpenTable, lua.TabLibName)), "table."), "table"))
	co := lib(lua.OpenCoroutine, lua.CoroutineLibName)
	env.RawSetString("coroutine", v.readOnly.freeze(from(co, fromCoroutine, v.coroutineLib(co), "coroutine."), "coroutine"))
	str := from(nil, nil, v.stringLib(), "string.")
	str.RawSetString("gfind", str.RawGetString("gmatch")) // its old name
	env.RawSetString("string", v.readOnly.freeze(str, "string"))
	smt := L.CreateTable(0, 4)
	smt.RawSetString("__index", str)
	smt.RawSetString("__metatable", lua.LFalse)
	L.SetMetatable(lua.LString(""), smt)
	env.RawSetString("_G", v.readOnly.freeze(env, "_G"))
	// The tables of gopher-lua's own libraries stay behind, unreachable.
	v.library.env, L.Env, L.G.Global = env, env, env
}

// NewVM returns a VM that has run the file and is ready for its hooks.
func (p *program) NewVM(h scripting.Host) (scripting.VM, error) {
	v := p.newVM(h)
	if err := v.load(); err != nil {
		return nil, err
	}
	v.hooks = newHookSet(v.raw)
	v.openContext()
	return v, nil
}

// define runs the file for its definition.
func (p *program) define() error {
	v := p.newVM(scripting.Host{Log: func(slog.Level, string, string, []any) {}})
	if err := v.load(); err != nil {
		return err
	}
	def, err := scripting.Define(p.main.file, *v.raw)
	p.def = def
	return err
}

// hookLoad is what errors give as their hook while the file runs.
const hookLoad = "load"

// load runs the main chunk, which must return what weir.transform returned.
func (v *vm) load() error {
	v.hook = hookLoad
	v.budget.start(loadTime, 0)
	fn := v.L.NewFunctionFromProto(v.prog.main.proto)
	if err := v.run(fn, 1); err != nil {
		return err
	}
	got := v.L.Get(-1)
	v.L.SetTop(0)
	def, ok := got.(*lua.LUserData)
	if ok {
		v.raw, ok = def.Value.(*scripting.Raw)
	}
	if !ok {
		e := v.prog.main.file.Error(0, "load", errors.New("cannot use a script that does not return its definition"))
		e.Hint = "end the file with return weir.transform { … }"
		return e
	}
	return nil
}

// run calls fn with the arguments under a handler that keeps the stack.
func (v *vm) run(fn lua.LValue, results int, args ...lua.LValue) error {
	L := v.L
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	if err := v.trap.tryRecorded(L, len(args), results); err != nil {
		return v.scriptError(err)
	}
	return nil
}

func (v *vm) Begin(c *scripting.Call) {
	v.call = c
	v.budget.heap.start(cmp.Or(c.Memory, scripting.DefaultMemory))
	v.budget.heap.setting = ", the limit is script.limits.memory"
	v.startLimits()
	v.failed = v.loadFailed
}

// startLimits begins what counts anew after a wait, of a call that says so.
func (v *vm) startLimits() {
	c := v.call
	v.budget.start(c.Time+time.Duration(c.Records)*timePerRecord, c.Records)
	v.budget.clock.setting = ", the limit is script.limits.time"
	v.emit = c.Emit
}

// pause is asked before a function that waits, resume told after it.
func (v *vm) pause() error {
	if v.call == nil || v.call.Pause == nil {
		return nil
	}
	return v.call.Pause()
}

func (v *vm) resume() {
	v.budget.resume()
	if v.call != nil && v.call.Resume != nil && v.budget.tripped == nil && v.call.Resume() {
		v.startLimits()
	}
}

// timePerRecord is added to a call's time for each record of its batch.
const timePerRecord = 20 * time.Microsecond

func (v *vm) Broken() bool { return v.broken }

func (v *vm) Series(s *view.Series) error {
	v.hook, v.seen = "series", s
	err := v.run(v.hooks.series, 0, v.series, v.ctx.series)
	v.seen = nil
	return err
}

func (v *vm) Metrics(m *view.Metrics) error {
	v.hook, v.win, v.outLogs = v.batchHook("metrics"), m, v.call.Logs
	if v.prog.def.Sends&batch.SignalMetrics != 0 {
		v.out = m
	}
	err := v.run(v.hooks.metrics, 0, v.batch, v.ctx.metrics)
	v.win, v.out, v.outLogs, v.recs = nil, nil, nil, nil
	return err
}

func (v *vm) Stream(s *view.Stream) error {
	v.hook, v.seen = "stream", s
	err := v.run(v.hooks.stream, 0, v.stream, v.ctx.series)
	v.seen = nil
	return err
}

func (v *vm) Logs(m *view.Logs) error {
	v.hook, v.lines, v.out = v.batchHook("logs"), m, v.call.Metrics
	if v.prog.def.Sends&batch.SignalLogs != 0 {
		v.outLogs = m
	}
	err := v.run(v.hooks.logs, 0, v.logBatch, v.ctx.metrics)
	v.lines, v.out, v.outLogs, v.lineRecs = nil, nil, nil, nil
	v.texts.Forget() // parts of lines, which would keep all of them
	clear(v.cells[:cap(v.cells)])
	return err
}

// batchHook is the name of the hook that gets batches of a signal.
func (v *vm) batchHook(signal string) string {
	if v.prog.def.Kind == scripting.Sink {
		return "send"
	}
	return signal
}

func (v *vm) Run(h *scripting.Hook) (scripting.Value, error) {
	v.hook, v.out, v.outLogs = h.Name, h.Metrics, h.Logs
	defer func() { v.out, v.outLogs, v.recs = nil, nil, nil }()
	fn := function(v.raw, h.Name, h.Key)
	if h.Args == nil {
		return nil, v.run(fn, 0, v.ctx.metrics)
	}
	var out scripting.Value
	// Under the handler: an argument or a result that is too large is an error
	// of the script's.
	err := v.run(v.L.NewFunction(func(L *lua.LState) int {
		L.Push(fn)
		for _, x := range h.Args {
			L.Push(v.fromGo(L, x, 0))
		}
		L.Push(v.ctx.metrics)
		L.Call(len(h.Args)+1, 1)
		out = v.toGo(L, L.Get(-1), 0)
		return 0
	}), 0)
	return out, err
}

// callerPosition is the position of the script's line that called the host, with a
// colon at its end; "" when there is none.
func callerPosition(L *lua.LState) string { return L.Where(1) }

// hostError is a Go error on its way through the script.
type hostError struct {
	err   error
	where string
}

func (e *hostError) Error() string { return strings.TrimSpace(e.where + " " + e.err.Error()) }

// raise raises a Go error at the caller's line.
func (v *vm) raise(L *lua.LState, err error) {
	if errors.Is(err, view.ErrTooMuch) {
		err = v.budget.stopCall(fmt.Errorf("%w: %w", scripting.ErrLimit, err))
	}
	ud := L.NewUserData()
	ud.Value = &hostError{err, callerPosition(L)}
	L.Error(ud, 0)
}

// errorValue is what pcall gives a script for an error value.
func (v *vm) errorValue(obj lua.LValue) lua.LValue {
	if ud, ok := obj.(*lua.LUserData); ok {
		if e, ok := ud.Value.(*hostError); ok {
			return lua.LString(e.Error())
		}
	}
	return obj
}

// log passes a line of the script on.
func (v *vm) log(L *lua.LState, level slog.Level, msg string, fields []any) {
	if v.host.Log != nil {
		v.host.Log(level, strings.TrimSuffix(callerPosition(L), ":"), msg, fields)
	}
}

// position reads the `file:line: ` that an error message begins with.
func (p *program) position(msg string) (c *chunk, line int, rest string) {
	for name, c := range p.files {
		after, ok := strings.CutPrefix(msg, name+":")
		if !ok {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(after, "%d:", &n); err != nil {
			continue
		}
		_, rest, _ = strings.Cut(after, ":")
		return c, n, strings.TrimSpace(rest)
	}
	return nil, 0, msg
}
