package watch

import (
	"os"
	"testing"
)

// TestSilent asks real file systems.
func TestSilent(t *testing.T) {
	f := func(dir, want string) {
		t.Helper()
		if got := silentFileSystem(dir); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
	f("/proc/self", "proc")
	if _, err := os.Stat("/sys/kernel"); err == nil {
		f("/sys", "sysfs")
	}
	f(t.TempDir(), "")
	f("/nowhere", "")
}
