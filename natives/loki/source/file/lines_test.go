package file

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scanned returns the lines that bufio.Scanner finds.
func scanned(b []byte) (lines []string) {
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<30)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	return lines
}

// FuzzSplit: lines are the same as those of bufio.Scanner, and the same if a file
// is read in ranges of any size.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n\r\nc"), 1)
	f.Add([]byte("\n"), 2)
	f.Add([]byte("a\r\rb\x00\n\xff\xfe"), 3)
	f.Add([]byte(strings.Repeat("0123456789\n", 100)), 64)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = max(1, min(limit, 1<<20))
		b = bytes.TrimLeft(b, "\x00") // a hole
		want := scanned(b)
		got, _ := plain.split(b)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-scanner +split):\n%s", diff)
		}
		if c, n := plain.byMark(b); c != plain || n > 0 {
			return // the encoding does not match the bytes
		}
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := openFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fi, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		lf := newLogFile(file, fi, path, plain, "")
		var ranges []string
		for lf.hasUnread() || lf.hasPartialLine() {
			c, ok, err := lf.nextChunk(limit, lf.hasPartialLine())
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				ranges = append(ranges, c.lines...)
				lf.cursor.advance(c)
			}
		}
		if diff := cmp.Diff(want, ranges, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("in ranges of %d (-scanner +ranges):\n%s", limit, diff)
		}
	})
}

// TestUnitsAreAligned checks that a line end is not found across two characters.
func TestUnitsAreAligned(t *testing.T) {
	c, err := encodingOf("UTF-16LE")
	if err != nil {
		t.Fatal(err)
	}
	f := func(b string, index, end int) {
		t.Helper()
		if i, e := c.index([]byte(b)), c.end([]byte(b)); i != index || e != end {
			t.Errorf("%q: got index %d and end %d, want %d and %d", b, i, e, index, end)
		}
	}
	f("", -1, 0)
	f("\n\x00", 0, 2)
	f("a\n\x00b", -1, 0)
	f("a\x00\n\x00b\x00", 2, 4)
	f("\x00\n\x00\n\x00", -1, 0)
	f("a\n\x00\n\n\x00a\x00", 4, 6)
	f("\n\x00a\n\x00\n", 0, 2)
}

func TestFamily(t *testing.T) {
	f := func(base, name string, want bool) {
		t.Helper()
		if got := isRotatedName(base, name); got != want {
			t.Errorf("%s of %s: got %v, want %v", name, base, got, want)
		}
	}
	for _, name := range []string{"app.log.1", "app.log.2.gz", "app.log-20250101", "app.log-20250101-1735689600.gz", "app.log.20250101-101010",
		"app.1.log", "app-2025-01-01T10-00-00.000.log", "app-20250101.log", "app.log.old", "app.log.bak"} {
		f("app.log", name, true)
	}
	for _, name := range []string{"app.log", "application.log", "app-other.log", "app.log.err", "other.log.1", "app", "app.log.1.tmp"} {
		f("app.log", name, false)
	}
	f("messages", "messages-20250101", true)
	f("messages", "messages.1", true)
	f("messages", "messagesother", false)
	f("0.log", "0.log.20250101-101010.gz", true)
	f("0.log", "1.log", false)
}
