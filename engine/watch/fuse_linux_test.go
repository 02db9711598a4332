package watch_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/files/filestest"
)

// TestDead is TestHangs with a file system that really does not answer, from the
// beginning.
func TestDead(t *testing.T) {
	dead, dir := filestest.Dead(t), t.TempDir()
	filestest.Patience(t, 100*time.Millisecond)
	_, changed := watcher(t, dead, filepath.Join(dead, "x"), filepath.Join(filepath.Dir(dead), "*.alloy"), dir)
	save(t, filepath.Join(dir, "x"), "1")
	wantChange(t, changed, filepath.Join(dir, "x"))
}
