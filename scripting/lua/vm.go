package lua

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
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
	raw    *scripting.Raw // the definition, once the file has run
	broken bool           // it must be thrown away
	test   *test          // nil except in a test file's VM
	prompt *prompt        // nil until a statement is evaluated
	aside  bool           // it runs code for a debugger

	library    library
	readOnly   readOnlyTables
	modules    modules
	hooks      hookSet
	args       hookArgs
	call       activeCall
	budget     budget
	retention  retention
	trap       trap
	coroutines coroutines
	values     values
	handles    rowHandles
	projector  projector
}

// hookArgs are the values that hooks are called with. There is one of each in a
// VM; they are valid while their hook runs.
type hookArgs struct {
	batch, logBatch *lua.LUserData
	series, stream  *lua.LUserData
	ctx             struct{ metrics, series *lua.LTable } // series is for hooks whose answer is remembered
}

// values makes Lua values from values of the host.
type values struct {
	mt       metatables
	null     *lua.LUserData
	numbers  numbers
	texts    view.Texts
	parts    scripting.Parts
	patterns scripting.Patterns
	// recordField pushes a field of a record.
	recordField func(L *lua.LState, m *view.Metrics, r *record, field lua.LValue) int
}

// rowHandles are handles of rows that were allocated and not given to the script
// yet, the fields of a row, and the call of an operation.
type rowHandles struct {
	records []record
	lines   []line
	cells   []view.Cell
	// spareCall is for the next operation, unless it is in use.
	spareCall *operation.Call
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
		library:   library{names: map[*lua.LFunction]string{}},
		projector: projector{byProto: map[*lua.FunctionProto]*projection{}},
	}
	v.readOnly = readOnlyTables{L: v.L, behind: map[*lua.LTable]*lua.LTable{}}
	v.budget.held = v.heldBytes
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
	if v.prog.debug != nil {
		env.RawSetString(debugGlobal, L.NewFunction(v.atMark))
		env.RawSetString(returnGlobal, L.NewFunction(func(L *lua.LState) int { return L.GetTop() }))
	}
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
	if err := v.loadFile(); err != nil {
		return nil, err
	}
	v.hooks = newHookSet(v.raw)
	v.openContext()
	return v, nil
}

// define runs the file for its definition.
func (p *program) define() error {
	v := p.newVM(scripting.Host{Log: func(slog.Level, string, string, []any) {}})
	if err := v.loadFile(); err != nil {
		return err
	}
	def, err := scripting.Define(p.main.file, *v.raw)
	p.def = def
	return err
}

// loadFile runs the main chunk, which must return the result of weir.transform or of
// another kind.
func (v *vm) loadFile() error {
	v.call.enter(loading, hookLoad)
	defer v.call.leave()
	v.budget.start(loadTime, 0)
	fn := v.L.NewFunctionFromProto(v.prog.main.proto)
	if err := v.runFunction(fn, 1); err != nil {
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

// runFunction calls fn with the arguments under a handler that keeps the stack.
func (v *vm) runFunction(fn lua.LValue, results int, args ...lua.LValue) error {
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

// Broken reports whether the VM must be thrown away.
func (v *vm) Broken() bool { return v.broken }

// callerPosition is the position of the script's line that called the host, with a
// colon at its end; "" when there is none.
func callerPosition(L *lua.LState) string { return L.Where(1) }

// Position returns the line that called the host.
func (v *vm) Position() (f scripting.File, line int) {
	L := v.L.G.CurrentThread
	for level := 0; ; level++ {
		if _, ok := L.GetStack(level); !ok {
			return v.prog.main.file, 0
		}
		if c, line, _ := v.prog.position(L.Where(level)); c != nil {
			return c.file, line
		}
	}
}

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
