package lua

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// hookSet are the functions of a definition.
type hookSet struct {
	series, metrics, stream, logs *lua.LFunction   // nil without such a hook
	all                           []*lua.LFunction // those and all others
}

// newHookSet takes the functions out of a definition.
func newHookSet(raw *scripting.Raw) (h hookSet) {
	for _, f := range raw.Fields {
		if m, ok := f.Value.(map[string]any); ok {
			for _, x := range m {
				if fn, ok := x.(scripting.Func); ok {
					h.all = append(h.all, fn.Ref.(*lua.LFunction))
				}
			}
		}
		if fn, ok := f.Value.(scripting.Func); ok {
			h.add(f.Name, fn.Ref.(*lua.LFunction))
		}
	}
	return h
}

func (h *hookSet) add(name string, fn *lua.LFunction) {
	h.all = append(h.all, fn)
	switch name {
	case "series":
		h.series = fn
	case "stream":
		h.stream = fn
	case "logs":
		h.logs = fn
	case "metrics":
		h.metrics = fn
	case "send":
		h.metrics, h.logs = fn, fn
	}
}

// function finds a function of a definition: the one with a key in the table
// name, or name itself.
func function(raw *scripting.Raw, name, key string) *lua.LFunction {
	for _, f := range raw.Fields {
		if f.Name != name {
			continue
		}
		x := f.Value
		if m, ok := x.(map[string]any); ok {
			x = m[key]
		}
		if fn, ok := x.(scripting.Func); ok {
			return fn.Ref.(*lua.LFunction)
		}
	}
	panic(fmt.Sprintf("BUG: there is no hook %s %q", name, key))
}
