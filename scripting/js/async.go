package js

import (
	"errors"
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// A hook may be async. A host function that waits does so synchronously, and
// returns a promise that is already settled. Therefore, after the hook and its
// pending jobs have run, its promise is settled or will never be.

// waited returns the promise for the result of a host function that waited.
func (v *vm) waited(out goja.Value, err error) goja.Value {
	p, resolve, reject := v.rt.NewPromise()
	if err != nil {
		v.must(reject(v.errorObject(err)))
	} else {
		v.must(resolve(out))
	}
	return v.rt.ToValue(p)
}

// awaited gives the promise of f's result getters with the names of the
// result's fields, which report a missing await. Otherwise, they would silently
// be undefined.
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

// promiseOf returns x as a promise, or nil if it is not one.
func promiseOf(x goja.Value) *goja.Promise {
	if o, ok := x.(*goja.Object); ok {
		return exported[*goja.Promise](o)
	}
	return nil
}

// awaitPromise returns the result of a hook's promise, or x itself if it is not
// a promise.
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

// track records rejected promises without a handler.
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

// unheard returns the error of a rejected promise without a handler.
func (v *vm) unheard() error {
	if len(v.rejected) == 0 {
		return nil
	}
	p := v.rejected[0]
	v.rejected = nil
	return &rejection{p.Result()}
}

// remembered runs a hook whose result is cached, so that it must not wait.
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
