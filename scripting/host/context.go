package host

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/scripting"
)

// Context returns the table of ctx without args, log, emit and everything else
// that a language binds itself. The manual and the types for editors are
// generated from it. Its functions cannot be called.
func Context() *scripting.Module { return NewContext(&Binding{}, nil, nil, nil) }

// NewContext returns ctx for the scripts on one VM. Its functions use the
// current call. o contains the external resources that the script may use. def
// determines which functions belong to its kind; nil means all.
func NewContext(h *Binding, slots []*StateSlot, o *Access, def *scripting.Definition) *scripting.Module {
	m := &scripting.Module{
		Name: "ctx",
		Doc:  "Functions that need an identity, a grant or a clock.",
		Funcs: []scripting.Function{
			nowFunc(h),
			sleepFunc(h),
			healthFunc(h),
			retryFunc(h),
			rejectFunc(h),
			attemptFunc(h),
			batchIDFunc(h),
		},
		Tables: []*scripting.Module{stateModule(h, slots)},
	}
	m.Tables = append(m.Tables, metricsTable(h))
	addOutside(m, h, o)
	addKind(m, h, def)
	return m
}

// addKind adds the functions of a kind of component to ctx, or all functions
// for the manual, which has no definition.
func addKind(m *scripting.Module, h *Binding, def *scripting.Definition) {
	why := map[string]string{} // it is not there
	add := func(f scripting.Function, has bool, what string) {
		if def == nil || has {
			m.Funcs = append(m.Funcs, f)
		} else {
			why[f.Name] = "cannot use ctx." + f.Name + ": " + what
		}
	}
	kind := scripting.Transform
	if def != nil {
		kind = def.Kind
	}
	what := "the definition declares no exports; write exports = { targets = weir.arg.targets {} }"
	if kind != scripting.Source {
		what = fmt.Sprintf("only a weir.source can export values; a %s exports only its receiver", kind)
	}
	add(exportFunc(h), kind == scripting.Source && len(def.Exports) > 0, what)
	what = "only the hook run needs it; records emitted by other hooks are sent when the hook returns"
	if kind != scripting.Source {
		what = "only the hook run of a weir.source can use it"
	}
	add(flushFunc(h), kind == scripting.Source && def.Run, what)
	outside := m.Absent
	m.Absent = func(name string) string {
		if w, ok := why[name]; ok {
			return w
		}
		return outside(name)
	}
}

func sleepFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name:   "sleep",
		Doc:    "Waits for a duration. The current batch and its source wait too. The wait does not count towards the script's time limit. In run, the duration is not limited by script.limits.wait.",
		Params: []scripting.Param{{Name: "seconds", Kind: scripting.KindNumber, Doc: "The duration in seconds."}},
		Result: scripting.Result{Fails: true, Doc: "Nothing. It fails if script.limits.wait is shorter or weir stops."},
		Waits:  true,
		Uses: []scripting.Use{{
			Lua: `assert(ctx.sleep(0) == nil)`, JS: `await ctx.sleep(0);`, Input: "a 1\n", Output: "a 1\n",
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			d := args[0].(float64)
			if !(d >= 0 && d < 1e6) {
				return nil, fmt.Errorf("cannot sleep %v seconds", d)
			}
			long := time.Duration(d * float64(time.Second))
			if sleep := h.Call().Sleep; sleep != nil { // nobody waits for it
				return nil, sleep(long)
			}
			return h.Wait(func(ctx context.Context) (scripting.Value, error) { return nil, h.Sleep(ctx, long) })
		},
	}
}

func nowFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name:   "now",
		Doc:    "Returns the time of the call. It does not change while a hook runs.",
		Result: scripting.Result{Kind: scripting.KindInt, Doc: "Unix milliseconds, like the time of a record."},
		Uses: []scripting.Use{{
			Lua:    `for r in batch:records() do r.value = ctx.now() end`,
			JS:     `for (const r of batch) r.value = ctx.now();`,
			Test:   `assert.equals(t:now(), t:metrics("a 1"):value("a"))`,
			TestJS: `expect(t.metrics("a 1").value("a")).toBe(t.now());`,
		}},
		Fn: func([]scripting.Value) (scripting.Value, error) { return h.Call().Now.UnixMilli(), nil },
	}
}
