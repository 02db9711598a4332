package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/natives/loki/source/file"
)

// TestPatternIsNoFile: a pattern without file_match causes a warning.
func TestPatternIsNoFile(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "app[1].log")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(path string, match bool, want string) {
		t.Helper()
		a := file.Registration().NewArgs().(*file.Arguments)
		a.FileMatch.Enabled = match
		a.Targets = []map[string]string{{"__path__": path}}
		got := strings.Join(a.Warnings(), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	pattern := filepath.Join(dir, "*.log")
	f(pattern, false, "targets[0] has __path__ ")
	f(pattern, false, "which is no file: to take it for a pattern, write file_match { enabled = true }")
	f(pattern, true, "")
	f(odd, false, "")
	f(filepath.Join(dir, "gone.log"), false, "")
}

// TestTailFromEndOfCompressedFiles: Alloy accepts tail_from_end together with
// decompression, where it is not supported; the file is read completely.
func TestTailFromEndOfCompressedFiles(t *testing.T) {
	scene(t, func(h *harness) {
		decompressing(h, "gz")
		h.args.TailFromEnd = true
		h.append("app.log", compressed(t, "gz", "one\ntwo\n"))
		h.start()
		h.want("one", "two")
		if got, want := strings.Join(h.args.Warnings(), "\n"), "tail_from_end has no effect with decompression"; !strings.Contains(got, want) {
			t.Errorf("got warnings %q, want %q", got, want)
		}
	})
}
