package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much the heap may grow until it is collected, in percent of
// what lives. Go's default is 100.
const gcPercent = 50

// limitGarbage sets the garbage collector for weir run, unless GOGC does.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
