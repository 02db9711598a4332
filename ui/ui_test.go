package ui_test

import (
	"compress/gzip"
	"io/fs"
	"testing"

	"github.com/weir-run/weir/ui"
)

// TestSize: the web UI loads quickly over a slow link.
func TestSize(t *testing.T) {
	var n counter
	files := 0
	err := fs.WalkDir(ui.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(ui.Files(), path)
		if err != nil {
			return err
		}
		files++
		w := gzip.NewWriter(&n)
		if _, err := w.Write(text); err != nil {
			return err
		}
		return w.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if most := counter(250_000); n > most || files < 3 {
		t.Errorf("%d files have %d bytes when they are compressed; the limit is %d", files, n, most)
	}
}

// counter counts bytes.
type counter int

// Write counts b.
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
