package js

import (
	"errors"
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// A hook may be async. What a host function waits for, it waits for where it is
// called, and gives a promise that is settled: so that after the hook and the
// jobs that it left, its promise is settled as well, or never will be.

// waited is the promise of what a host function waited for.
func (v *vm) waited(out goja.Value, err error) goja.Value {
	p, resolve, reject := v.rt.NewPromise()
	if err != nil {
		v.must(reject(v.errorObject(err)))
	} else {
		v.must(resolve(out))
	}
	return v.rt.ToValue(p)
}

// awaited gives a promise of what f returns the names that its result has, to
// say that an await is missing: they would be undefined, and no mistake.
func (v *vm) awaited(p goja.Value, name string, f *scripting.Function) goja.Value {
	names := scripting.Names(f.Result.Fields)
	if t := f.Result.Type; t != nil {
		names = append(names, api.Members(t)...)
	}
	o := p.(*goja.Object)
	for _, n := range names {
		n = scripting.CamelCase(n)
		get := v.rt.ToValue(func(goja.FunctionCall) goja.Value {
			v.raise(fmt.Errorf("cannot read %s of a promise: write await before %s(…)", n, name))
			return nil
		})
		v.must(o.DefineAccessorProperty(n, get, nil, goja.FLAG_FALSE, goja.FLAG_FALSE))
	}
	return p
}

// promiseOf is the promise that x is, nil for none.
func promiseOf(x goja.Value) *goja.Promise {
	if o, ok := x.(*goja.Object); ok {
		return exported[*goja.Promise](o)
	}
	return nil
}

// awaitPromise returns what a hook's promise came to, and what is no promise as it is.
func (v *vm) awaitPromise(x goja.Value) (goja.Value, error) {
	p := promiseOf(x)
	if p == nil {
		return x, nil
	}
	switch p.State() {
	case goja.PromiseStateFulfilled:
		return p.Result(), nil
	case goja.PromiseStateRejected:
		v.forget(p)
		return nil, &rejection{p.Result()}
	}
	return nil, errors.New("the hook awaits a promise that nothing settles: only functions of weir that wait, such as ctx.http, give promises to wait for")
}

// track notes promises that are rejected while nobody listens.
func (v *vm) track(p *goja.Promise, op goja.PromiseRejectionOperation) {
	if op == goja.PromiseRejectionHandle {
		v.forget(p)
		return
	}
	if len(v.rejected) < 100 {
		v.rejected = append(v.rejected, p)
	}
}

func (v *vm) forget(p *goja.Promise) {
	for i, r := range v.rejected {
		if r == p {
			v.rejected = append(v.rejected[:i], v.rejected[i+1:]...)
			return
		}
	}
}

// unheard is the error of a promise that was rejected and that nobody awaits.
func (v *vm) unheard() error {
	if len(v.rejected) == 0 {
		return nil
	}
	p := v.rejected[0]
	v.rejected = nil
	return &rejection{p.Result()}
}

// remembered runs a hook whose answer is remembered, so that it cannot wait.
func (v *vm) remembered(fn, arg goja.Value) error {
	async := false
	_, err := v.runWith(fn, func(out goja.Value) { async = promiseOf(out) != nil }, arg, v.ctx.series)
	if err == nil && async {
		return v.scriptError(asyncRemembered(v.hook))
	}
	return err
}

func asyncRemembered(hook string) error {
	return fmt.Errorf("cannot use an async function as hook %s: its answer is remembered, so there is nothing that it could wait for; use metrics or logs", hook)
}
