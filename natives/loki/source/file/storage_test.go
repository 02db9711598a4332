package file_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestOwnFiles: the positions log grows with every line that is read; reading it
// would never end.
func TestOwnFiles(t *testing.T) {
	f := func(match bool, targets ...string) {
		t.Helper()
		scene(t, func(h *harness) {
			h.node.StoragePath = h.path("data")
			h.node.DataPath = h.path("data/loki.source.file.f")
			h.must(os.MkdirAll(h.node.DataPath, 0o755))
			h.append("data/loki.source.file.f/other.log", "own\n")
			if runtime.GOOS != "windows" {
				h.must(os.Symlink(h.path("data"), h.path("link")))
				h.must(os.Symlink(h.path("data/loki.source.file.f/other.log"), h.path("linked.log")))
			}
			h.follow(targets...)
			h.args.FileMatch.Enabled = match
			h.append("app.log", "a\n")
			h.append("database.log", "b\n")
			h.start()
			h.pass(21 * time.Second)
			h.wantLabelled("filename", h.path("app.log")+" a", h.path("database.log")+" b")
			if n := strings.Count(h.node.Logs(), "targets lead to files in weir's storage directory"); n != 1 {
				t.Errorf("it is logged %d times:\n%s", n, h.node.Logs())
			}
		})
	}
	f(true, "**")
	f(true, "*.log", "*/*/*.log")
	f(true, "*.log", "data/loki.source.file.f/positions.log")
	f(false, "app.log", "database.log", filepath.Join("data", "loki.source.file.f", "positions.log"))
	if runtime.GOOS != "windows" {
		f(true, "{app,database,linked}.log")
		f(true, "*.log", "link/*/*")
		f(false, "app.log", "database.log", "linked.log")
	}
}
