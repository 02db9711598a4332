package main

import (
	"runtime/debug"
	"testing"
)

func TestLimitGarbage(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	f := func(gogc string, want int) {
		t.Helper()
		debug.SetGCPercent(100)
		t.Setenv("GOGC", gogc)
		limitGarbage()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("with GOGC=%q the heap grows by %d %%, want %d", gogc, got, want)
		}
	}
	f("", 50)
	f("70", 100) // Go has read it before
}
