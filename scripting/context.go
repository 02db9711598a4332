package scripting

import (
	"context"
	"fmt"
	"time"
)

// Context is what ctx has beside args, log, emit and what else a language binds
// itself: the table that the manual and the editors' types are made from. Its
// functions cannot be called.
func Context() *Module { return newContext(&hookHost{}, nil, nil, nil) }

// newContext makes what ctx is for the scripts on one VM. Its functions are
// about the call at hand. What is outside is what the world grants, and
// what belongs to a kind is what def says; nil is all there is.
func newContext(h *hookHost, slots []*stateSlot, o *world, def *Definition) *Module {
	m := &Module{
		Name: "ctx",
		Doc:  "What needs identity, a grant or a clock.",
		Funcs: []Function{
			nowFunc(h),
			sleepFunc(h),
			healthFunc(h),
			retryFunc(h),
			rejectFunc(h),
			attemptFunc(h),
			batchIDFunc(h),
		},
		Tables: []*Module{stateModule(h, slots)},
	}
	m.Tables = append(m.Tables, metricsTable(h))
	addOutside(m, h, o)
	addKind(m, h, def)
	return m
}

// addKind adds to ctx what belongs to a kind of component, or all of it for the
// manual, which has no definition.
func addKind(m *Module, h *hookHost, def *Definition) {
	why := map[string]string{} // it is not there
	add := func(f Function, has bool, what string) {
		if def == nil || has {
			m.Funcs = append(m.Funcs, f)
		} else {
			why[f.Name] = "cannot use ctx." + f.Name + ": " + what
		}
	}
	kind := Transform
	if def != nil {
		kind = def.Kind
	}
	what := "the definition declares no exports; write exports = { targets = weir.arg.targets {} }"
	if kind != Source {
		what = fmt.Sprintf("it is for weir.source, a %s exports its receiver alone", kind)
	}
	add(exportFunc(h), kind == Source && len(def.Exports) > 0, what)
	what = "it is for the hook run; what others emit is sent when they return"
	if kind != Source {
		what = "it is for the hook run of weir.source"
	}
	add(flushFunc(h), kind == Source && def.Run, what)
	outside := m.Absent
	m.Absent = func(name string) string {
		if w, ok := why[name]; ok {
			return w
		}
		return outside(name)
	}
}

func sleepFunc(h *hookHost) Function {
	return Function{
		Name:   "sleep",
		Doc:    "Waits. The batch at hand, and with it its source, waits as well; the script's time limit does not run. In run it waits as long as it is told to.",
		Params: []Param{{Name: "seconds", Kind: KindNumber, Doc: "How long."}},
		Result: Result{Fails: true, Doc: "Nothing; an error when script.limits.wait is shorter or weir stops."},
		Waits:  true,
		Uses: []Use{{
			Lua: `assert(ctx.sleep(0) == nil)`, JS: `await ctx.sleep(0);`, Input: "a 1\n", Output: "a 1\n",
		}},
		Fn: func(args []Value) (Value, error) {
			d := args[0].(float64)
			if !(d >= 0 && d < 1e6) {
				return nil, fmt.Errorf("cannot sleep %v seconds", d)
			}
			long := time.Duration(d * float64(time.Second))
			if sleep := h.call().sleep; sleep != nil { // nobody waits for it
				return nil, sleep(long)
			}
			return h.wait(func(ctx context.Context) (Value, error) { return nil, h.sleep(ctx, long) })
		},
	}
}

func nowFunc(h *hookHost) Function {
	return Function{
		Name:   "now",
		Doc:    "The time of the call: it stands still while a hook runs.",
		Result: Result{Kind: KindInt, Doc: "Unix milliseconds, as a record's time."},
		Uses: []Use{{
			Lua:    `for r in batch:records() do r.value = ctx.now() end`,
			JS:     `for (const r of batch) r.value = ctx.now();`,
			Test:   `assert.equals(t:now(), t:metrics("a 1"):value("a"))`,
			TestJS: `expect(t.metrics("a 1").value("a")).toBe(t.now());`,
		}},
		Fn: func([]Value) (Value, error) { return h.call().now.UnixMilli(), nil },
	}
}
