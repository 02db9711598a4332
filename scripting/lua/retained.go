package lua

import (
	"fmt"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// retainedEvery is after how many instructions the memory of a VM is added up
// between calls; a VM that holds many values waits longer.
const retainedEvery = 500_000

// retention decides when the memory that a VM holds between calls is added up.
type retention struct {
	ran int64 // instructions since it was last added up
	due int64 // the number of instructions at which it is added up again
}

func newRetention() retention { return retention{due: retainedEvery} }

// add adds the instructions of a call and reports whether the memory is to be
// added up now.
func (r *retention) add(ran int64) bool {
	r.ran += ran
	return r.ran >= r.due
}

// restart starts over after the memory was added up, which took a visit of so
// many values.
func (r *retention) restart(values int) { r.ran, r.due = 0, max(retainedEvery, 4*int64(values)) }

// End ends a call. From time to time it adds up the memory that the VM holds:
// values in a local variable of the file stay, and could become more and more.
func (v *vm) End() error {
	v.values.parts.Forget()
	ran := v.budget.instr.ran()
	v.prog.probe.Ran(ran)
	if due := v.retention.add(ran); v.broken || !due {
		return nil
	}
	limit := int(v.budget.heap.limit)
	w := v.walk(limit)
	v.budget.heap.known = int64(w.size)
	v.retention.restart(len(w.seen))
	if w.size <= limit {
		return nil
	}
	v.broken = true
	e := v.prog.main.file.Error(0, "metrics", fmt.Errorf("%w: the script holds more than %s between calls%s", scripting.ErrLimit, sizeText(int64(limit)), v.budget.heap.setting))
	e.Hint = "a table outside of the hooks grows; each VM has its own, and this VM now starts again"
	return e
}

// heldBytes returns how many bytes the VM holds, or any number over limit.
func (v *vm) heldBytes(limit int) int { return v.walk(limit).size }

// walk adds up the values that can be reached from the VM: its globals, functions
// and stacks. It does not see values that a host function is creating.
func (v *vm) walk(limit int) *walker {
	w := &walker{seen: map[unsafe.Pointer]bool{}, skip: v.readOnly.behind, env: v.library.env, limit: limit}
	for _, fn := range v.hooks.all {
		w.value(fn)
	}
	for _, m := range v.modules {
		if m.state == moduleLoaded {
			w.value(m.value)
		}
	}
	for k, x := range entries(v.library.env) {
		w.value(k)
		w.value(x)
	}
	if v.prompt != nil {
		w.value(v.prompt.env)
	}
	w.value(v.L)
	return w
}

// walker adds up what can be reached.
type walker struct {
	seen  map[unsafe.Pointer]bool
	skip  map[*lua.LTable]*lua.LTable // the host's own
	env   *lua.LTable
	limit int
	size  int
}

// first reports whether p was not seen before, and adds n then.
func (w *walker) first(p unsafe.Pointer, n int) bool {
	if w.seen[p] || w.size > w.limit {
		return false
	}
	w.seen[p] = true
	w.size += n
	return true
}

// text adds a string, of which others may have a part.
func (w *walker) text(s string) {
	if len(s) > 0 {
		w.first(unsafe.Pointer(unsafe.StringData(s)), len(s))
	}
}

func (w *walker) value(x lua.LValue) {
	// A list of what is still to be visited: the script decides how deep it is.
	todo := []lua.LValue{x}
	for len(todo) > 0 && w.size <= w.limit {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch x := x.(type) {
		case lua.LString:
			w.size += 16
			w.text(string(x))
		case *lua.LTable:
			if _, host := w.skip[x]; host || x == w.env || !w.first(unsafe.Pointer(x), 120) {
				continue
			}
			// A deleted key stays in keys, and an array that was filled up with
			// nil stays long, which only reflection shows.
			keys, slots := room(x)
			if keys > 0 {
				w.size += 500 // two maps
			}
			w.size += 100*keys + 16*slots
			if x.Metatable != nil {
				todo = append(todo, x.Metatable)
			}
			x.ForEach(func(k, v lua.LValue) { todo = append(todo, k, v) })
		case *lua.LFunction:
			if !w.first(unsafe.Pointer(x), 100) {
				continue
			}
			for _, u := range x.Upvalues {
				if u != nil && w.first(unsafe.Pointer(u), 72) {
					if uv := u.Value(); uv != nil {
						todo = append(todo, uv)
					}
				}
			}
		case *lua.LUserData:
			if w.first(unsafe.Pointer(x), 500) {
				w.host(x.Value)
			}
		case *lua.LState:
			if !w.first(unsafe.Pointer(x), 24<<10) {
				continue
			}
			reg := registryOf(x)
			w.size += 16 * cap(reg.array)
			for _, x := range reg.array[:reg.top] {
				if x != nil {
					todo = append(todo, x)
				}
			}
		}
	}
}

// host adds what a value of the host holds that a script can make many of.
func (w *walker) host(x any) {
	switch c := x.(type) {
	case *copied:
		w.size += c.rec.Held()
	case *copiedLine:
		w.size += c.rec.Held()
	case *scripting.Object:
		if re, ok := c.Data.(scripting.Pattern); ok && w.first(unsafe.Pointer(re), 0) {
			w.size += re.Bytes()
		}
	}
}
