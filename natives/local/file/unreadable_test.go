//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/natives/local/file"
)

func TestUnreadable(t *testing.T) {
	want := map[string]string{
		"FIFO": "is a FIFO, not a regular file", "socket": "is a socket", "zero": "is a device", "full": "is a device", "directory": "is a directory",
		"loop": "too many levels of symbolic links", "dangling": "no such file", "sparse": "is larger than 16 MiB",
	}
	for kind, path := range filestest.Special(t, "f") {
		filestest.Within(t, "building on a "+kind, func() {
			n := componenttest.New(t, "local.file.default")
			if _, err := file.Registration().Build(n.Options(), arguments(path), nil); err == nil || !strings.Contains(err.Error(), want[kind]) {
				t.Errorf("%s: got %v, want %q", kind, err, want[kind])
			}
		})
	}
}

// TestBecomesFIFO replaces a file that was read by a FIFO.
func TestBecomesFIFO(t *testing.T) {
	n, c, a := build(t, "one", nil)
	if err := os.Remove(a.Filename); err != nil {
		t.Fatal(err)
	}
	filestest.FIFO(t, a.Filename)
	filestest.Within(t, "an update", func() {
		if err := c.Update(a); err != nil {
			t.Errorf("got %v, want the error in the health only", err)
		}
	})
	wantContent(t, n, false, "one")
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "is a FIFO") {
		t.Errorf("got health %+v, want unhealthy for a FIFO", h)
	}
}

// TestHangs: while the file system does not respond, the last content stays, and
// nothing waits for it.
func TestHangs(t *testing.T) { synctest.Test(t, testHangs) }

func testHangs(t *testing.T) {
	n, c, a := build(t, "one", nil)
	asked, release := filestest.Hang(t, filepath.Dir(a.Filename))
	for range 3 {
		if err := c.Update(a); err != nil {
			t.Errorf("got %v, want the error in the health only", err)
		}
		pass(n, a.PollFrequency)
	}
	wantContent(t, n, false, "one")
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "has not returned since") {
		t.Errorf("got health %+v, want unhealthy and what hangs", h)
	}
	if len(asked) != 1 {
		t.Errorf("the file system was asked %d times, want once", len(asked))
	}
	write(t, a.Filename, "two")
	release()
	pass(n, a.PollFrequency)
	wantContent(t, n, false, "two")
	if got := n.Health().State; got != component.Healthy {
		t.Errorf("got health %v, want healthy again", got)
	}
}
