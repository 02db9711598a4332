package file_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// copytruncate does the same as logrotate's copytruncate.
func (h *harness) copytruncate(name, to string) {
	h.t.Helper()
	b, err := os.ReadFile(h.path(name))
	h.must(err)
	h.append(to, string(b))
	h.must(os.Truncate(h.path(name), 0))
}

// TestCopiedUnread: if a file was copied and truncated before any of it was read,
// the copy is a new file. It is read if a pattern matches it.
func TestCopiedUnread(t *testing.T) {
	f := func(down bool) {
		t.Helper()
		scene(t, func(h *harness) {
			h.follow("*.log*")
			h.args.FileMatch.Enabled = true
			h.start()
			if down {
				h.stop()
			}
			h.append("app.log", "a\n")
			h.copytruncate("app.log", "app.log.1")
			h.append("app.log", "b\n")
			if down {
				h.start()
			}
			h.pass(20 * time.Second)
			h.wantLabelled("filename", h.path("app.log.1")+" a", h.path("app.log")+" b")
		})
	}
	f(false)
	f(true)
}

// TestTruncatedAndRenamed: if a file was copied, truncated and then renamed
// between two checks, the copy is read first and then the file.
func TestTruncatedAndRenamed(t *testing.T) {
	f := func(unread, anew string, want ...string) {
		t.Helper()
		scene(t, func(h *harness) {
			h.append("app.log", "a\nb\n")
			h.start()
			h.append("app.log", unread)
			h.copytruncate("app.log", "app.log.2")
			h.append("app.log", anew)
			h.rename("app.log", "app.log.1")
			h.append("app.log", "last\n")
			h.pass(time.Minute)
			h.want(want...)
			h.counts("weir_source_file_lost_bytes_total", 0)
		})
	}
	f("", "c\n", "a", "b", "c", "last")
	f("c\n", "d\n", "a", "b", "c", "d", "last")
	f("c\n", "d\ne\nf\ng\n", "a", "b", "c", "d", "e", "f", "g", "last")
}

// rotator is a sink that rotates files during its first calls.
type rotator struct {
	*sink
	left   int
	happen func()
}

func (r *rotator) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if r.left > 0 {
		r.left--
		r.happen()
	}
	return r.sink.ConsumeLogs(ctx, b)
}

// TestRotatedFasterThanRead: if reading falls behind the writer, files that are
// not read yet are already known, so that their copies are found.
func TestRotatedFasterThanRead(t *testing.T) {
	const each, rotations = 3000, 10 // 300 kB, which is two batches
	f := func(rotate func(h *harness, n int)) {
		t.Helper()
		scene(t, func(h *harness) {
			n := 0
			write := func() {
				h.append("app.log", strings.Join(numbers(strings.Repeat("x", 93), n*each, (n+1)*each-1), "\n")+"\n")
				n++
			}
			r := &rotator{h.sink, rotations, func() { rotate(h, n); write() }}
			to := flow.NewReceiver("rotator", batch.SignalLogs, nil, nil)
			to.Set(r)
			h.args.ForwardTo = []*flow.Receiver{to}
			write()
			h.start()
			h.pass(time.Minute)
			want, got := numbers(strings.Repeat("x", 93), 0, (rotations+1)*each-1), h.sink.lines()
			for i, line := range want {
				if i == len(got) || line != got[i] {
					t.Errorf("got %d lines, want %d; line %d is another one", len(got), len(want), i)
					break
				}
			}
			h.counts("weir_source_file_lost_bytes_total", 0)
		})
	}
	f(func(h *harness, n int) { h.copytruncate("app.log", fmt.Sprintf("app.log-%03d", n)) })
	f(func(h *harness, n int) { h.rename("app.log", fmt.Sprintf("app.log-%03d", n)) })
	f(func(h *harness, _ int) { h.remove("app.log") })
}

// TestEqualLines: if all lines are equal, a truncated file that has grown to its
// old size or more looks as if it had only grown. A file that became shorter was
// truncated, whatever its content.
func TestEqualLines(t *testing.T) {
	f := func(anew, want int) {
		t.Helper()
		scene(t, func(h *harness) {
			h.append("app.log", strings.Repeat("equal\n", 3))
			h.start()
			h.sink.forget()
			h.must(os.Truncate(h.path("app.log"), 0))
			h.append("app.log", strings.Repeat("equal\n", anew))
			h.pass(time.Second)
			if got := len(h.sink.lines()); got != want {
				t.Errorf("got %d of %d lines, want %d", got, anew, want)
			}
		})
	}
	f(1, 1)
	f(2, 2)
	f(3, 0)
	f(5, 2)
}

// TestStrangeNames: the path of a target is not a pattern and may contain any
// characters.
func TestStrangeNames(t *testing.T) {
	scene(t, func(h *harness) {
		names := []string{"[a-z]{x,y}.log", "sp ace.log", "ü.log"}
		if runtime.GOOS == "linux" { // other systems refuse some
			names = append(names, "new\nline.log", "star*?.log", `back\slash"quote.log`, "no utf-8 \xff.log")
		}
		h.follow(names...)
		for _, name := range names {
			h.append(name, "1\n")
		}
		h.start()
		for _, name := range names {
			h.append(name, "2\n")
			h.rename(name, name+".1")
			h.append(name, "3\n")
		}
		h.pass(time.Second)
		if got := h.sink.lines(); len(got) != 3*len(names) {
			t.Errorf("got %q", got)
		}
		h.stop()
		h.sink.forget()
		for _, name := range names {
			h.append(name, "4\n")
		}
		h.start()
		if got := strings.Join(h.sink.lines(), " "); got != strings.TrimSpace(strings.Repeat("4 ", len(names))) {
			t.Errorf("after a restart got %q", got)
		}
	})
}

// TestDirectoryAnew: a directory that was removed with its files and created
// again has the same path.
func TestDirectoryAnew(t *testing.T) {
	scene(t, func(h *harness) {
		h.follow("d/*.log")
		h.args.FileMatch.Enabled = true
		for _, line := range []string{"a", "b", "c"} {
			h.must(os.Mkdir(h.path("d"), 0o755))
			h.append("d/app.log", line+"\n")
			if line == "a" {
				h.start()
			}
			h.pass(11 * time.Second)
			h.must(os.RemoveAll(h.path("d")))
			h.pass(11 * time.Second)
		}
		h.want("a", "b", "c")
		h.counts("weir_source_file_lost_bytes_total", 0)
	})
}

// TestHuge uses offsets beyond 4 GiB, in a file that is mostly a hole.
func TestHuge(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "first\n")
		h.start()
		h.stop()
		const at = 5 << 30
		f, err := os.OpenFile(h.path("big.log"), os.O_CREATE|os.O_WRONLY, 0o600)
		h.must(err)
		_, err = f.WriteAt([]byte("\nold\n"), at)
		h.must(err)
		h.must(f.Close())
		h.node.Clock.Advance(time.Hour * 24 * 365 * 20)
		h.follow("big.log")
		h.args.TailFromEnd = true
		h.sink.forget()
		h.start()
		h.append("big.log", "a\n")
		h.pass(time.Second)
		h.stop()
		h.append("big.log", "b\n")
		h.start()
		h.want("a", "b")
	})
}
