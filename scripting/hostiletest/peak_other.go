//go:build !linux

package hostiletest

import (
	"runtime"
	"runtime/debug"
)

func forgetPeak() { debug.FreeOSMemory() }

// peak is what the heap has of the system: there is no peak to be had.
func peak() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapSys - m.HeapReleased)
}
