package lua

import (
	"fmt"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// maxRetained is how much a VM may hold between calls, estimated, in bytes.
// Within a call, time and the budget of strings bound what can be made; what a
// script puts into a local of its file stays, and would add up.
const maxRetained = 64 << 20

// retainedEvery is after how many instructions the estimate is made anew; it
// waits longer when there was more to walk.
const retainedEvery = 500_000

// End ends a call: it looks now and then at what the VM holds.
func (v *vm) End() error {
	ran := v.budget.spent + slice - v.budget.left
	v.prog.probe.Ran(ran)
	v.worked += ran
	if v.broken || v.worked < v.walkAt {
		return nil
	}
	w := walker{seen: map[unsafe.Pointer]bool{}, skip: v.frozen}
	for _, fn := range v.hooks.all {
		w.value(fn)
	}
	for _, m := range v.loaded {
		w.value(m)
	}
	v.worked, v.walkAt = 0, max(retainedEvery, 4*int64(len(w.seen)))
	if w.size <= maxRetained {
		return nil
	}
	v.broken = true
	e := v.prog.main.file.Error(0, "metrics", fmt.Errorf("%w: the script holds more than %d MiB between calls", scripting.ErrLimit, maxRetained>>20))
	e.Hint = "a table outside of the hooks grows; each VM has its own, and it now starts anew"
	return e
}

// walker adds up what can be reached.
type walker struct {
	seen map[unsafe.Pointer]bool
	skip map[*lua.LTable]*lua.LTable // the host's own
	size int
}

// first reports whether p was not seen before, and adds n then.
func (w *walker) first(p unsafe.Pointer, n int) bool {
	if w.seen[p] || w.size > maxRetained {
		return false
	}
	w.seen[p] = true
	w.size += n
	return true
}

func (w *walker) value(x lua.LValue) {
	// A list of what is still to be visited: the script decides how deep it is.
	todo := []lua.LValue{x}
	for len(todo) > 0 && w.size <= maxRetained {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch x := x.(type) {
		case lua.LString:
			if w.size += 16; len(x) > 0 {
				w.first(unsafe.Pointer(unsafe.StringData(string(x))), len(x))
			}
		case *lua.LTable:
			if _, host := w.skip[x]; host || !w.first(unsafe.Pointer(x), 120) {
				continue
			}
			// A deleted key stays in keys, which only reflection shows.
			w.size += 100*tableKeys.of(x) + 16*x.MaxN()
			if x.Metatable != nil {
				todo = append(todo, x.Metatable)
			}
			x.ForEach(func(k, v lua.LValue) { todo = append(todo, k, v) })
		case *lua.LFunction:
			if !w.first(unsafe.Pointer(x), 100) {
				continue
			}
			for _, u := range x.Upvalues {
				if u != nil {
					if uv := u.Value(); uv != nil {
						todo = append(todo, uv)
					}
				}
			}
		case *lua.LUserData:
			w.first(unsafe.Pointer(x), 500)
		case *lua.LState:
			w.first(unsafe.Pointer(x), 24<<10)
		}
	}
}

// tableKeys reads the length of a table's list of keys.
var tableKeys = newKeysField()

type keysField uintptr

func newKeysField() keysField {
	f, ok := reflect.TypeFor[lua.LTable]().FieldByName("keys")
	if !ok || f.Type != reflect.TypeFor[[]lua.LValue]() {
		panic("BUG: lua.LTable has no list of keys any more: look at its memory again")
	}
	return keysField(f.Offset)
}

func (f keysField) of(t *lua.LTable) int {
	return len(*(*[]lua.LValue)(unsafe.Add(unsafe.Pointer(t), f)))
}
