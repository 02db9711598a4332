package js

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// TestNativesAreMet makes sure that every function that is bounded is there
// under its path: one that goja names otherwise would be bounded no more.
func TestNativesAreMet(t *testing.T) {
	rt := goja.New()
	b := &budget{rt: rt}
	met := map[string]bool{}
	// The host may have looked at something before.
	rt.Get("Object").(*goja.Object).Get("prototype").(*goja.Object).Get("constructor")
	openSandbox(rt, b, func(path string) { met[path] = true })
	if _, err := rt.RunString(`"use strict";
		const seen = new Set(), todo = [globalThis, Object.getPrototypeOf(function* () {}).constructor, (async () => {}).constructor,
			Object.getPrototypeOf(new Map().keys()), Object.getPrototypeOf([].keys())]
		while (todo.length > 0) {
			const o = todo.pop()
			if (o === null || typeof o !== "object" && typeof o !== "function" || seen.has(o)) continue
			seen.add(o)
			for (const k of Reflect.ownKeys(o)) {
				const d = Reflect.getOwnPropertyDescriptor(o, k)
				todo.push(d.value, d.get, d.set)
			}
			todo.push(Reflect.getPrototypeOf(o))
		}
		for (const o of seen) {
			if (!Object.isFrozen(o)) throw new Error("not frozen: " + String(o) + " " + Reflect.ownKeys(o).map(String))
		}`); err != nil {
		t.Error(err)
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(natives)), slices.Collect(maps.Keys(constructors)), slices.Collect(maps.Keys(mayOverride))) {
		if alias, ok := strings.CutPrefix(name, "TypedArray"); !met[name] && !(ok && met["Array"+alias]) && !met["Typed"+name] {
			t.Errorf("there is no %s", name)
		}
	}
}
