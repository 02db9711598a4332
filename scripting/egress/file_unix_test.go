//go:build unix

package egress_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/scripting/egress"
)

// TestReadPipe holds that a named pipe is refused and not waited for.
func TestReadPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip("no named pipes: ", err)
	}
	if _, err := egress.ReadFile(dir, "pipe", 10); err == nil || !strings.Contains(err.Error(), "it is no regular file") {
		t.Errorf("got %v", err)
	}
}

// TestReadMade holds that files without a size, which the system makes when
// they are read, are bounded all the same.
func TestReadMade(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	if got, err := egress.ReadFile("/proc/self", "status", 1<<20); err != nil || !strings.Contains(string(got), "Name:") {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := egress.ReadFile("/proc/self", "status", 10); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("got %v", err)
	}
}
