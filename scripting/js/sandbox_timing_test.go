package js

import (
	"testing"

	"github.com/dop251/goja"
)

// BenchmarkVM is what a VM costs before the script's file has run in it.
func BenchmarkVM(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		rt := goja.New()
		newSandbox(rt, &budget{rt: rt})
	}
}

// BenchmarkNative is what a call of one of the language's own functions costs in
// a loop of the script.
func BenchmarkNative(b *testing.B) {
	b.ReportAllocs()
	rt := goja.New()
	newSandbox(rt, &budget{rt: rt})
	v, err := rt.RunString(`(n) => { for (let i = 0; i < n; i++) Math.abs(i) }`)
	if err != nil {
		b.Fatal(err)
	}
	fn, _ := goja.AssertFunction(v)
	b.ResetTimer()
	if _, err := fn(goja.Undefined(), rt.ToValue(b.N)); err != nil {
		b.Fatal(err)
	}
}
