package lua

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// ctxRoute is ctx.route(output, record). A record of the batch, or its number as
// rows gives it, goes to the output instead of forward_to; a copy or a table is
// an additional record.
func (v *vm) ctxRoute(L *lua.LState) int {
	if !v.call.canEmit() {
		v.raise(L, errors.New("cannot use ctx.route here: it is for metrics, logs, every, poll, run and http"))
	}
	name, ok := L.Get(1).(lua.LString)
	if !ok {
		v.raise(L, fmt.Errorf("cannot route to a %s: write ctx.route(\"output\", record)", L.Get(1).Type()))
	}
	way, err := v.prog.def.Way(string(name))
	v.must(L, err)
	switch x := L.Get(2).(type) {
	case *lua.LUserData:
		if r, ok := x.Value.(*record); ok {
			r.check(L).Route(r.row, way)
			return 0
		}
		if r, ok := x.Value.(*line); ok {
			r.check(L).Route(r.row, way)
			return 0
		}
	case lua.LNumber:
		m := v.currentWindow()
		if m == nil {
			v.raise(L, errors.New("cannot route a record by its number here: there is no batch"))
		}
		m.Route(v.rowNumber(L, m, x), way)
		return 0
	case *lua.LNilType:
		v.raise(L, fmt.Errorf("cannot route nothing: write ctx.route(%q, record)", string(name)))
	}
	v.emitTo(L, way, L.Get(2))
	return 0
}
