package file_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestRewritten truncates a file and writes it again between two checks. This is
// detected by the content, even if the file is not shorter than before.
func TestRewritten(t *testing.T) {
	f := func(before, after string, lost float64, want ...string) {
		t.Helper()
		t.Run(fmt.Sprintf("%q %q", before, after), func(t *testing.T) {
			scene(t, func(h *harness) {
				h.append("app.log", before)
				h.start()
				fi, err := os.Stat(h.path("app.log"))
				h.must(err)
				h.must(os.WriteFile(h.path("app.log"), []byte(after), 0o644))
				// The clock of the file system may tick only every few milliseconds.
				at := fi.ModTime().Add(time.Second)
				h.must(os.Chtimes(h.path("app.log"), at, at))
				h.pass(time.Second)
				h.append("app.log", "z\n")
				h.pass(time.Second)
				h.want(want...)
				h.counts("weir_source_file_lost_bytes_total", lost)
			})
		})
	}
	// same size as before
	f("a1\nb1\n", "a2\nb2\n", 0, "a1", "b1", "a2", "b2", "z")
	f("a1\nb1", "a2\nb2", 2, "a1", "a2", "b2z")
	f("ab", "c\n", 0, "c", "z")
	// same size as the part that was read
	f("a1\nb1", "a2\n", 2, "a1", "a2", "z")
	// longer than that, and shorter than before
	f("a1\nbcdef", "a1\nx\n", 0, "a1", "x", "z")
	f("a1\nbcdef", "a2\nx\n", 5, "a1", "a2", "x", "z")
	// longer than before
	f("a1\nb1", "a2\nb2\n", 2, "a1", "a2", "b2", "z")
	// only the time changed
	f("a1\nb1\n", "a1\nb1\n", 0, "a1", "b1", "z")
	f("a1\nb1", "a1\nb1", 0, "a1", "b1z")
}

// TestTruncatedUnread: bytes that were known but not read before a truncation are
// counted.
func TestTruncatedUnread(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\nbcd")
		h.start()
		h.must(os.Truncate(h.path("app.log"), 0))
		h.pass(time.Second)
		h.append("app.log", "e\n")
		h.pass(time.Second)
		h.want("a", "e")
		h.counts("weir_source_file_lost_bytes_total", 3)
	})
}
