package lua

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// maxResume is how deep coroutines may resume each other; each level is a loop
// of the VM on the Go stack, some KiB.
const maxResume = 200

// fromCoroutine are gopher-lua's functions that are safe as they are.
var fromCoroutine = []string{"running", "status"}

// coroutines counts the coroutines that run inside each other.
type coroutines struct{ depth int }

// enter reports whether another coroutine may be resumed. If so, leave must be
// called when it has yielded or ended.
func (c *coroutines) enter() bool {
	if c.depth == maxResume {
		return false
	}
	c.depth++
	return true
}

func (c *coroutines) leave() { c.depth-- }

// coroutineLib wraps what makes and resumes threads: a thread inherits the
// VM's context only wrapped in one whose Done never closes, and would escape
// the limits.
func (v *vm) coroutineLib(lib *lua.LTable) map[string]lua.LGFunction {
	create := lib.RawGetString("create").(*lua.LFunction).GFunction
	resume := lib.RawGetString("resume").(*lua.LFunction).GFunction
	yield := lib.RawGetString("yield").(*lua.LFunction).GFunction
	newThread := func(L *lua.LState) int {
		if v.budget.threads--; v.budget.threads < 0 {
			v.must(L, v.budget.stopCall(fmt.Errorf("%w: the call made too many coroutines", scripting.ErrLimit)))
		}
		v.must(L, v.budget.charge(200)) // a thread is memory: about 10 KiB
		n := create(L)
		th := L.Get(-1).(*lua.LState)
		th.RemoveContext()
		th.SetContext(&v.budget)
		return n
	}
	enter := func(L *lua.LState) int {
		if !v.coroutines.enter() {
			L.RaiseError("cannot nest more than %d coroutines", maxResume)
		}
		defer v.coroutines.leave()
		return resume(L)
	}
	return map[string]lua.LGFunction{
		"create": newThread,
		"resume": enter,
		"yield": func(L *lua.LState) int {
			if L == v.L {
				L.RaiseError("cannot yield: this is no coroutine")
			}
			for i := 1; ; i++ {
				d, ok := L.GetStack(i)
				if !ok {
					break
				}
				if _, err := L.GetInfo("S", d, lua.LNil); err == nil && d.What == "G" {
					// The host function below would go on as if its callback
					// had returned.
					L.RaiseError("cannot yield across a call of the host, such as pcall or batch:each")
				}
			}
			return yield(L)
		},
		"wrap": func(L *lua.LState) int {
			L.CheckFunction(1)
			newThread(L)
			th := L.Get(-1)
			L.Push(L.NewClosure(func(L *lua.LState) int {
				L.Insert(th, 1)
				// resume leaves true and values, or false and the error, on top.
				n := enter(L)
				if n > 0 && L.Get(-n) == lua.LTrue {
					return n - 1
				}
				if n > 0 {
					L.Error(L.Get(-1), 0)
				}
				return 0
			}, th)) // an upvalue, so that it is known to be held
			return 1
		},
	}
}
