//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weir-run/weir/engine/files"
)

// TestRewriteKeepsOwner: a file that root writes keeps its owner.
func TestReplaceFileKeepsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(t.TempDir(), "c.alloy")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12, 34); err != nil {
		t.Fatal(err)
	}
	if err := files.Rewrite(path, "new"); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	if st.Uid != 12 || st.Gid != 34 || fi.Mode().Perm() != 0o640 {
		t.Errorf("got user %d, group %d, permissions %o", st.Uid, st.Gid, fi.Mode().Perm())
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Errorf("got %q, %v", b, err)
	}
}
