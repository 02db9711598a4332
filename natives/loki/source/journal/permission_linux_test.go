package journal_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-run/weir/natives/loki/source/journal"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// TestPermission reads what may be read, and says what to do about the rest.
func TestPermission(t *testing.T) {
	l := newLab(t)
	l.write(l.create("system.journal"), 1, 3)
	l.write(l.create("user-1000.journal"), 4, 5)
	if err := os.Chmod(filepath.Join(l.dir, "system.journal"), 0); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // and never unlock: the thread ends with the test
	if os.Geteuid() == 0 { // root reads everything, unless it reads as somebody else
		for dir := l.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(l.dir, "user-1000.journal"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
	}
	r := journalfile.NewReader(journalfile.Options{Roots: []journalfile.Root{{Path: l.dir}}, Now: time.Now})
	n := 0
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		n++
	}
	if n != 2 {
		t.Errorf("got %d entries, want the 2 of the user's journal", n)
	}
	got := journal.Problem(&journal.Arguments{Path: l.dir}, r)
	for _, want := range []string{"cannot read " + filepath.Join(l.dir, "system.journal") + ": permission denied", "usermod -aG systemd-journal"} {
		if !strings.Contains(got, want) {
			t.Errorf("got problem %q, want %q in it", got, want)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
