package file_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scene runs f in a synctest bubble with a harness. The component stops at the
// end.
func scene(t *testing.T, f func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		f(h)
		if h.stop != nil {
			h.stop()
		}
	})
}

func TestFollow(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\nb\r\n\nc")
		h.start()
		h.want("a", "b", "")
		h.append("app.log", "d\n")
		h.pass(time.Second)
		h.want("a", "b", "", "cd")
		h.stop()
		h.append("app.log", "e\n")
		h.start()
		h.want("a", "b", "", "cd", "e")
		if got, want := h.sink.entries()[0].labels, `{filename="`+h.path("app.log")+`",job="j"}`; got != want {
			t.Errorf("got stream %s, want %s", got, want)
		}
	})
}

func TestRename(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.append("app.log", "b\n")
		h.rename("app.log", "app.log.1")
		h.append("app.log", "d\n")
		h.append("app.log.1", "c\n")
		h.pass(time.Second)
		h.want("a", "b", "c", "d")
		h.append("app.log.1", "late\n")
		h.append("app.log", "e\n")
		h.pass(time.Second)
		h.want("a", "b", "c", "d", "late", "e")
	})
}

func TestTwoRotationsBetweenLooks(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.append("app.log.2", "of long ago\n")
		h.age("app.log.2", "app.log", -time.Hour)
		h.start()
		h.append("app.log", "b\n")
		h.rename("app.log.2", "app.log.4")
		h.rename("app.log", "app.log.3")
		h.append("app.log.2", "c\n")
		h.append("app.log.1", "d\n")
		h.age("app.log.2", "app.log.3", time.Second)
		h.age("app.log.1", "app.log.3", 2*time.Second)
		h.append("app.log", "e\n")
		h.pass(time.Second)
		h.want("a", "b", "c", "d", "e")
	})
}

func TestRotatedWhileDown(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.stop()
		h.append("app.log", "b\n")
		h.rename("app.log", "app.log.1")
		h.append("app.log", "c\n")
		h.start()
		h.want("a", "b", "c")
	})
}

// TestRotationIsNoNews: a rotation while weir was down that loses nothing is not
// logged.
func TestRotationIsNoNews(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.stop()
		h.rename("app.log", "app.log.1")
		h.append("app.log", "b\n")
		h.start()
		h.want("a", "b")
		for line := range strings.Lines(h.node.Logs()) {
			if !strings.Contains(line, "level=DEBUG") {
				t.Errorf("it is logged: %s", line)
			}
		}
	})
}

func TestCopyTruncate(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a1\nb1\n")
		h.start()
		h.append("app.log", "c1\n")
		b, err := os.ReadFile(h.path("app.log"))
		h.must(err)
		h.append("app.log.1", string(b))
		h.must(os.Truncate(h.path("app.log"), 0))
		h.append("app.log", "d2\ne2\nf2\ng2\nh2\n") // past the old offset
		h.pass(time.Second)
		h.want("a1", "b1", "c1", "d2", "e2", "f2", "g2", "h2")
	})
}

func TestKeptLinesComeAgain(t *testing.T) {
	scene(t, func(h *harness) {
		h.sink.hold = true
		h.append("app.log", "a\nb\n")
		h.start()
		h.append("app.log", "c\n")
		h.pass(time.Second)
		h.rename("app.log", "app.log.1")
		h.append("app.log", "d\n")
		h.pass(time.Second)
		first := h.sink.entries()
		h.stop()
		h.sink.forget()
		h.start()
		if diff := cmp.Diff(first, h.sink.entries(), cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
		for _, hold := range h.sink.holds {
			hold.Release()
		}
		h.sink.hold = false
		h.sink.forget()
		h.stop()
		h.start()
		h.want()
	})
}
