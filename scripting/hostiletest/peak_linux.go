package hostiletest

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// forgetPeak gives back what is not in use and measures peak from here.
func forgetPeak() {
	debug.FreeOSMemory()
	// Where it cannot be written the peak is that of the process, which is more.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peak is the most that the process had in memory, in bytes.
func peak() int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	panic("no VmHWM in /proc/self/status")
}
