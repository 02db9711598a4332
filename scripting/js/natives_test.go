package js

import (
	"maps"
	"slices"
	"testing"

	"github.com/dop251/goja"
)

// TestNativesAreMet makes sure that every function that is bounded is there
// under its path: one that goja names otherwise would be bounded no more.
func TestNativesAreMet(t *testing.T) {
	rt := goja.New()
	b := &budget{rt: rt}
	newSandbox(rt, b)
	if _, err := rt.RunString(`"use strict";
		const seen = new Set(), todo = [globalThis, (function* () {}).constructor, (async () => {}).constructor, Object.getPrototypeOf(new Map().keys()), Object.getPrototypeOf([].keys())]
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
	paths.RLock()
	defer paths.RUnlock()
	all := map[string]bool{}
	for _, p := range paths.known {
		all[p], all[canonical(p)] = true, true
	}
	for name := range allowed {
		all[name] = true
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(natives)), slices.Collect(maps.Keys(constructors)), slices.Collect(maps.Keys(mayOverride))) {
		if !all[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
