package journalfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile/journalfiletest"
)

// FuzzReader overwrites a part of a journal file: reading ends without a panic,
// and every entry is either returned or counted.
func FuzzReader(f *testing.F) {
	f.Add(uint16(12), []byte{0x10}, false)
	f.Add(uint16(144), []byte{1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff}, false)
	f.Add(uint16(280), []byte{0xff, 0xff, 0xff}, true)
	f.Add(uint16(400), []byte{}, true)
	f.Fuzz(func(t *testing.T, where uint16, what []byte, cut bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.journal")
		w := journalfiletest.Create(t, path, sequence, len(what)%2 == 0)
		write(w, 1, 5)
		w.Compress([]string{"xz", "lz4", "zstd"}[where%3])
		write(w, 6, 10)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := min(int(where), len(b))
		if cut {
			b = b[:at]
		} else {
			copy(b[at:], what)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, dir, journalfile.Options{})
		n := 0
		for {
			e, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e == nil {
				break
			}
			if n++; n > 1000 {
				t.Fatal("more entries are returned than there are")
			}
		}
		var lost uint64
		for _, l := range r.Losses() {
			lost += l.Entries
		}
		if header := at < 272; !header && !cut && n+int(lost) != 10 {
			t.Errorf("%d entries are returned and %d counted as lost, want 10 in all", n, lost)
		}
	})
}
