package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// die ends weir like a power failure of the machine. edit changes the files that
// weir leaves; a file that does not exist is not created.
func (h *harness) die(edit func(log, checkpoint string)) {
	h.t.Helper()
	dir := h.node.Options().DataPath
	entries, err := os.ReadDir(dir)
	h.must(err)
	var names []string
	var contents [][]byte
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		h.must(err)
		names, contents = append(names, e.Name()), append(contents, b)
	}
	h.stop()
	h.must(os.RemoveAll(dir))
	h.must(os.MkdirAll(dir, 0o750))
	for i, name := range names {
		h.must(os.WriteFile(filepath.Join(dir, name), contents[i], 0o600))
	}
	if edit != nil {
		edit(filepath.Join(dir, "positions.log"), filepath.Join(dir, "positions.checkpoint"))
	}
}

// TestMachineEnds: lines that were accepted less than a minute before a power
// failure may not be on the disk, so they are sent again. They are not sent again
// if only weir ended, or had ended before.
func TestMachineEnds(t *testing.T) {
	const told = "the machine ended and not weir"
	f := func(name, boot string, edit func(log, checkpoint string), prepare, meanwhile func(h *harness), again ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			scene(t, func(h *harness) {
				h.boot = "one"
				h.append("app.log", "a\n")
				if prepare != nil {
					prepare(h)
				}
				h.start()
				h.pass(3 * time.Minute)
				h.sink.forget()
				for _, line := range []string{"b\n", "c\n", "d\n"} {
					h.append("app.log", line)
					h.pass(10 * time.Second)
				}
				if meanwhile != nil {
					meanwhile(h)
				}
				first := map[string]entry{}
				for _, e := range h.sink.entries() {
					first[e.line] = e
				}
				h.die(edit)
				h.sink.forget()
				h.boot = boot
				h.start()
				h.pass(time.Second)
				h.want(again...)
				if got, want := strings.Contains(h.node.Logs(), told), len(again) > 0; got != want {
					t.Errorf("it is logged: %v, want %v", got, want)
				}
				h.counts("weir_source_file_lost_bytes_total", 0)
				if edit == nil { // the log contains the times
					for _, e := range h.sink.entries() {
						if diff := cmp.Diff(first[e.line], e, cmp.AllowUnexported(entry{})); diff != "" {
							t.Errorf("(-first +again):\n%s", diff)
						}
					}
				}
				// Afterwards, everything works as usual.
				h.sink.forget()
				h.append("app.log", "on\n")
				h.pass(5 * time.Minute)
				h.want("on")
				h.stop()
				h.sink.forget()
				h.boot = "three"
				h.start()
				h.want()
			})
		})
	}
	gone := func(path string) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	none := func(*harness) {}
	f("machine", "two", nil, none, none, "b", "c", "d")
	f("weir only", "one", nil, none, none)
	f("a system that does not tell", "-", nil, func(h *harness) { h.boot = "-" }, none)
	f("log gone", "two", func(log, _ string) { gone(log) }, none, none, "b", "c", "d")
	f("log empty", "two", func(log, _ string) {
		if err := os.Truncate(log, 0); err != nil {
			t.Fatal(err)
		}
	}, none, none, "b", "c", "d")
	f("rotated since", "two", nil, none, func(h *harness) {
		h.rename("app.log", "app.log.1")
		h.append("app.log", "e\n")
		h.pass(time.Second)
		h.append("app.log", "f\n")
		h.pass(time.Second)
	}, "b", "c", "d", "e", "f")
}

// TestMachineEndsAtOnce: without a checkpoint, files are read from where reading
// began.
func TestMachineEndsAtOnce(t *testing.T) {
	scene(t, func(h *harness) {
		h.boot = "one"
		h.node.Clock.Advance(time.Hour * 24 * 365 * 20) // the file is older than that
		h.args.TailFromEnd = true
		h.append("app.log", "old\n")
		h.start()
		h.append("app.log", "a\n")
		h.pass(time.Minute)
		h.append("app.log", "b\n")
		h.pass(time.Second)
		h.want("a", "b")
		h.die(func(_, checkpoint string) {
			if _, err := os.Stat(checkpoint); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("got %v, want no checkpoint after a minute", err)
			}
		})
		h.boot = "two"
		h.start()
		h.want("a", "b", "a", "b")
	})
}

// TestCleanEnd: if the machine restarts after weir has ended, nothing is
// repeated.
func TestCleanEnd(t *testing.T) {
	scene(t, func(h *harness) {
		h.boot = "one"
		h.start()
		h.append("app.log", "a\n")
		h.pass(3 * time.Minute)
		h.append("app.log", "b\n")
		h.pass(time.Second)
		h.stop()
		h.boot = "two"
		h.start()
		h.want("a", "b")
	})
}
