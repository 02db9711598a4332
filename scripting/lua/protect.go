package lua

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// trap calls functions of the script and catches their errors.
type trap struct {
	record *lua.LFunction    // the handler that keeps the stack of an error
	keep   *lua.LFunction    // the handler that keeps nothing but the error
	bases  []int             // the register bases of the calls of try that run
	stack  []scripting.Frame // of the last error that record handled
}

func (t *trap) open(L *lua.LState) {
	t.record, t.keep = L.NewFunction(t.recordStack), L.NewFunction(t.keepError)
}

// try is PCall. gopher-lua's, without a handler, closes the upvalues of every
// live frame on an error, which cuts the caller's closures off from its locals,
// and formats a stack trace; with one, it closes none, and a closure that
// escaped from a function that failed reads what comes after in the stack. So
// there is always a handler here, and it first closes what is left behind.
func (t *trap) try(L *lua.LState, nargs, results int, handler *lua.LFunction) error {
	if handler == nil {
		handler = t.keep
	}
	handled := hasHandler(L)
	before, n := *handled, len(t.bases)
	t.bases = append(t.bases, registryOf(L).top-nargs-1)
	err := L.PCall(nargs, results, handler)
	t.bases = t.bases[:n]
	*handled = before // PCall clears it, although the call around it still has its own handler
	return err
}

// tryRecorded is try with a handler that keeps the script's part of the stack.
func (t *trap) tryRecorded(L *lua.LState, nargs, results int) error {
	t.stack = t.stack[:0]
	return t.try(L, nargs, results, t.record)
}

// maxTrace is how many frames of a stack are kept.
const maxTrace = 20

// recordStack is the handler of every call into a script: it runs before the
// stack is unwound and keeps the script's part of it. gopher-lua would format a
// trace of every frame instead, host frames and tail calls included, millions
// of them.
func (t *trap) recordStack(L *lua.LState) int {
	t.closeUpvalues(L)
	t.stack = t.stack[:0]
	for level := 1; level < 4*maxTrace && len(t.stack) < maxTrace; level++ {
		d, ok := L.GetStack(level)
		if !ok {
			break
		}
		if _, err := L.GetInfo("Sl", d, lua.LNil); err != nil || d.Source == "" || d.CurrentLine <= 0 {
			continue
		}
		f := scripting.Frame{File: d.Source, Line: d.CurrentLine, Func: "main chunk"}
		if d.LineDefined > 0 {
			f.Func = "function of line " + strconv.Itoa(d.LineDefined)
		}
		if n := len(t.stack); n > 0 && t.stack[n-1] == f {
			continue // a tail call's frame stands for all frames that it replaced
		}
		t.stack = append(t.stack, f)
	}
	L.SetTop(1)
	return 1
}

// keepError is a handler that keeps the error as it is.
func (t *trap) keepError(L *lua.LState) int {
	t.closeUpvalues(L)
	L.SetTop(1)
	return 1
}

// closeUpvalues gives functions a copy of the locals that they refer to and that
// are about to be given up: those above the innermost try. A handler calls it.
func (t *trap) closeUpvalues(L *lua.LState) {
	base := t.bases[len(t.bases)-1]
	link := openUpvalues(L)
	for *link != nil && (*link).index < base {
		link = &(*link).next
	}
	uv := *link
	*link = nil
	for ; uv != nil; uv = uv.next {
		uv.close()
	}
}
