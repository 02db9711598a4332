package journal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/natives/loki/source/journal"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// permissionVariable makes TestPermission read a directory as another user.
const permissionVariable = "WEIR_TEST_JOURNAL_PERMISSION"

// TestPermission reads the accessible files, and reports how to access the rest.
func TestPermission(t *testing.T) {
	if dir := os.Getenv(permissionVariable); dir != "" {
		if err := syscall.Setuid(65534); err != nil {
			t.Fatal(err)
		}
		checkPermission(t, dir)
		return
	}
	l := newHarness(t)
	l.write(l.create("system.journal"), 1, 3)
	l.write(l.create("user-1000.journal"), 4, 5)
	if err := os.Chmod(filepath.Join(l.dir, "system.journal"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		checkPermission(t, l.dir)
		return
	}
	// Root may read all files, so another process reads them as another user.
	for dir := l.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(l.dir, "user-1000.journal"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPermission$")
	cmd.Env = append(os.Environ(), permissionVariable+"="+l.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkPermission(t *testing.T, dir string) {
	t.Helper()
	r := journalfile.NewReader(journalfile.Options{Roots: []journalfile.Root{{Path: dir}}, Now: time.Now})
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
	got := journal.Problem(&journal.Arguments{Path: dir}, r)
	for _, want := range []string{"cannot read " + filepath.Join(dir, "system.journal") + ": permission denied", "usermod -aG systemd-journal"} {
		if !strings.Contains(got, want) {
			t.Errorf("got problem %q, want %q in it", got, want)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
