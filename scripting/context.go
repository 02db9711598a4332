package scripting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// Context is what ctx has beside args, log, emit and what else a language binds
// itself: the table that the manual and the editors' types are made from. Its
// functions cannot be called.
func Context() *Module { return newContext(&worker{}, nil, nil, nil) }

// newContext makes what ctx is for the scripts on one VM. Its functions are
// about the worker's call at hand. What is outside is what the world grants, and
// what belongs to a kind is what def says; nil is all there is.
func newContext(w *worker, slots []*stateSlot, o *world, def *Definition) *Module {
	m := &Module{
		Name: "ctx",
		Doc:  "What needs identity, a grant or a clock.",
		Funcs: []Function{
			nowFunc(w),
			sleepFunc(w),
			healthFunc(w),
			retryFunc(w),
			rejectFunc(w),
			attemptFunc(w),
			batchIDFunc(w),
		},
		Tables: []*Module{stateModule(w, slots)},
	}
	m.Tables = append(m.Tables, metricsTable(w))
	addOutside(m, w, o)
	addKind(m, w, def)
	return m
}

// addKind adds to ctx what belongs to a kind of component, or all of it for the
// manual, which has no definition.
func addKind(m *Module, w *worker, def *Definition) {
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
	add(exportFunc(w), kind == Source && len(def.Exports) > 0, what)
	what = "it is for the hook run; what others emit is sent when they return"
	if kind != Source {
		what = "it is for the hook run of weir.source"
	}
	add(flushFunc(w), kind == Source && def.Run, what)
	outside := m.Absent
	m.Absent = func(name string) string {
		if w, ok := why[name]; ok {
			return w
		}
		return outside(name)
	}
}

// wait runs fn, which waits for the outside: within the call's context, which
// ends when whoever sent the batch gives up, and within limits.wait. Every
// Function that Waits goes through it.
func (w *worker) wait(fn func(ctx context.Context) (Value, error)) (Value, error) {
	k := w.call
	w.pool.wait()
	defer w.pool.resume()
	limit := k.c.block.Limits.Wait
	w.op.Next("a wait of the script", limit+callGrace)
	defer func() { w.op.Next(callName, k.c.block.Limits.Time+callGrace) }()
	ctx, cancel := context.WithCancelCause(k.ctx)
	defer cancel(nil)
	alarm := clock.AfterFunc(k.c.opts.Clock, limit, func() { cancel(waitedTooLong(limit)) })
	defer alarm.Stop()
	v, err := fn(ctx)
	k.outside, k.outsideFailed = true, k.outsideFailed || err != nil
	return v, err
}

// errWaited is the limit of what a script waits for.
var errWaited = fmt.Errorf("%w: it waited longer", ErrTime)

func waitedTooLong(limit time.Duration) error {
	return fmt.Errorf("%w than %s, the limit is script.limits.wait", errWaited, limit)
}

// sleeper is a clock on which a script does not wait: that of a test, who would
// have to move it meanwhile.
type sleeper interface {
	Sleep(ctx context.Context, d time.Duration) error
}

func (w *worker) sleep(ctx context.Context, d time.Duration) error {
	c := w.call.c
	s, ok := c.opts.Clock.(sleeper)
	if !ok {
		return clock.Sleep(ctx, c.opts.Clock, d)
	}
	if limit := c.block.Limits.Wait; d > limit {
		return errors.Join(s.Sleep(ctx, limit), waitedTooLong(limit))
	}
	return s.Sleep(ctx, d)
}

func sleepFunc(w *worker) Function {
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
			if r := w.call.run; r != nil { // nobody waits for it
				return nil, r.sleep(long)
			}
			return w.wait(func(ctx context.Context) (Value, error) { return nil, w.sleep(ctx, long) })
		},
	}
}

func nowFunc(w *worker) Function {
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
		Fn: func([]Value) (Value, error) { return w.call.now.UnixMilli(), nil },
	}
}
