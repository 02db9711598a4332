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
