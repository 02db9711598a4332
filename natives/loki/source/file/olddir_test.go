package file_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOldDir: if a file was rotated into another directory while weir was down,
// reading continues at its position if a pattern matches it there.
func TestOldDir(t *testing.T) {
	f := func(patterns ...string) {
		t.Helper()
		scene(t, func(h *harness) {
			h.must(os.Mkdir(h.path("old"), 0o755))
			h.follow(patterns...)
			h.args.FileMatch.Enabled = true
			h.append("app.log", "a\n")
			h.start()
			h.want("a")
			h.stop()
			h.append("app.log", "b\n")
			h.rename("app.log", "old/app.log-20250101")
			h.append("app.log", "c\n")
			h.start()
			h.pass(time.Minute)
			got := h.sink.lines()
			slices.Sort(got)
			if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if logs := h.node.Logs(); strings.Contains(logs, "is not there any more") {
				t.Errorf("it is logged:\n%s", logs)
			}
			h.sink.forget()
			h.stop()
			h.append("app.log", "d\n")
			h.start()
			h.pass(time.Minute)
			h.want("d")
			h.counts("weir_source_file_lost_bytes_total", 0)
		})
	}
	for range 5 { // the order of the two is random
		f("app.log", "old/*")
		f("old/*", "app.log")
		f("**/*.log*")
	}
}

// TestOldDirElsewhere: the file is not found if no pattern matches it. A log line
// says that lines may be lost.
func TestOldDirElsewhere(t *testing.T) {
	scene(t, func(h *harness) {
		h.must(os.Mkdir(h.path("old"), 0o755))
		h.append("app.log", "a\n")
		h.start()
		h.append("app.log", "b\n")
		h.must(os.Rename(h.path("app.log"), h.path("old/app.log-20250101")))
		h.append("app.log", "c\n")
		h.append("old/app.log-20250101", "late\n")
		h.pass(time.Second)
		h.want("a", "b", "late", "c") // the file is still open
		h.stop()
		h.append("app.log", "d\n")
		h.rename("app.log", "old/app.log-20250102")
		h.append("app.log", "e\n")
		h.start()
		h.want("a", "b", "late", "c", "e")
		if !strings.Contains(h.node.Logs(), "a followed file and its copies no longer exist") {
			t.Errorf("it is not logged:\n%s", h.node.Logs())
		}
	})
}
