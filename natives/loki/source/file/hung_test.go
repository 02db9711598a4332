package file_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/natives/loki/source/file"
)

// TestHungFiles: if opening some files hangs, and there are more of them than
// workers, the other files are still read, and the health names the hanging
// files.
func TestHungFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.must(os.Mkdir(h.path("dead"), 0o755))
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("dead/%d.log", i))
			h.append(names[i], "late\n")
		}
		h.append("good.log", "first\n")
		h.follow(append(names, "good.log")...)
		answers := make(chan struct{})
		h.open = func(path string) (*os.File, error) {
			if strings.Contains(path, "/dead/") {
				<-answers
			}
			return file.Open(path)
		}
		h.start()
		h.pass(3 * time.Second)
		h.want("first")
		h.append("good.log", "second\n")
		h.pass(20 * time.Second)
		h.want("first", "second")
		if calls := h.node.Watch.Overdue(h.node.Clock.Now()); len(calls) == 0 || !strings.Contains(calls[0].String(), "reading "+h.path("dead")) {
			t.Errorf("the node says that %v does not return", calls)
		}
		close(answers)
		h.pass(5 * time.Second)
		if n := len(h.sink.lines()); n != 102 {
			t.Errorf("%d lines were read, want 102", n)
		}
		h.stop()
	})
}
