package file_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/file"
)

// opened opens a file as its writer does.
func (h *harness) opened(name string) *os.File {
	h.t.Helper()
	f, err := os.OpenFile(h.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	h.must(err)
	return f
}

func (h *harness) write(f *os.File, text string) {
	h.t.Helper()
	_, err := f.WriteString(text)
	h.must(err)
}

// withdraw removes the target, as local.file_match does if the file does not
// exist. bringBack adds it again.
func (h *harness) withdraw() (bringBack func()) {
	targets := h.args.Targets
	h.update(func(a *file.Arguments) { a.Targets = nil })
	return func() { h.update(func(a *file.Arguments) { a.Targets = targets }) }
}

// TestRotatedWithoutNewFile simulates logrotate with nocreate: the writer
// continues in the old file, its name does not exist, the target is removed, and
// the new file appears later. Lines that are written in the meantime arrive
// immediately.
func TestRotatedWithoutNewFile(t *testing.T) {
	f := func(prepare func(h *harness), rotate func(h *harness), vanish func(h *harness) (appear func())) {
		t.Helper()
		scene(t, func(h *harness) {
			h.must(os.Mkdir(h.path("old"), 0o755))
			prepare(h)
			w := h.opened("app.log")
			h.write(w, "a\n")
			h.start()
			rotate(h)
			appear := vanish(h)
			want := []string{"a"}
			for i := range 20 {
				h.write(w, fmt.Sprintf("late %d\npart", i))
				h.pass(time.Second)
				h.write(w, " of a line\n")
				want = append(want, fmt.Sprintf("late %d", i), "part of a line")
			}
			h.pass(time.Second)
			h.want(want...)
			h.write(w, "last\n")
			h.must(w.Close())
			h.append("app.log", "new\n")
			appear()
			h.pass(11 * time.Second)
			want = append(want, "last", "new")
			h.want(want...)
			h.counts("weir_source_file_rotated_files", 0)
			h.counts("weir_source_file_files", 1)
			h.counts("weir_source_file_lost_bytes_total", 0)
			h.counts("weir_source_file_abandoned_files_total", 0)
			h.stop()
			h.start()
			h.pass(11 * time.Second)
			h.want(want...) // nothing is repeated
		})
	}
	for _, rotate := range []func(h *harness){
		func(h *harness) { h.rename("app.log", "app.log.1") },
		func(h *harness) { h.rename("app.log", "old/app.1") },
		func(h *harness) { h.remove("app.log") },
	} {
		f(func(*harness) {}, rotate, func(*harness) func() { return func() {} })
		f(func(*harness) {}, rotate, (*harness).withdraw)
		f(func(h *harness) {
			h.follow("*.log")
			h.args.FileMatch.Enabled = true
		}, rotate, func(h *harness) func() {
			h.pass(11 * time.Second)
			return func() {}
		})
	}
}

// TestRenamedIntoThePattern: the pattern also matches the new name of the file.
// Its lines arrive once.
func TestRenamedIntoThePattern(t *testing.T) {
	scene(t, func(h *harness) {
		h.follow("app.log*")
		h.args.FileMatch.Enabled = true
		w := h.opened("app.log")
		h.write(w, "a\n")
		h.start()
		h.write(w, "b\n")
		h.rename("app.log", "app.log.1")
		want := []string{"a", "b"}
		for i := range 400 { // longer than max_wait: the target app.log.1 continues to read it
			h.write(w, fmt.Sprintf("late %d\n", i))
			want = append(want, fmt.Sprintf("late %d", i))
			h.pass(time.Second)
		}
		h.must(w.Close())
		h.rename("app.log.1", "app.log.2")
		h.append("app.log", "new\n")
		h.pass(time.Minute)
		h.want(append(want, "new")...)
		h.counts("weir_source_file_lost_bytes_total", 0)
		h.counts("weir_source_file_abandoned_files_total", 0)
		h.stop()
		h.start()
		h.pass(time.Minute)
		h.want(append(want, "new")...)
	})
}

// TestIdleTimeout: a rotated file without a writer is closed when it has been idle
// for idle_timeout, counted from its rotation at the earliest.
func TestIdleTimeout(t *testing.T) {
	f := func(rotate func(h *harness)) {
		t.Helper()
		scene(t, func(h *harness) {
			h.args.FileRotation.IdleTimeout = 30 * time.Second
			h.append("app.log", "a\n")
			h.start()
			h.pass(time.Hour)
			rotate(h)
			h.pass(25 * time.Second)
			h.counts("weir_source_file_rotated_files", 1)
			h.pass(10 * time.Second)
			h.counts("weir_source_file_rotated_files", 0)
			h.counts("weir_source_file_abandoned_files_total", 0)
		})
	}
	f(func(h *harness) { h.rename("app.log", "app.log.1") })
	f(func(h *harness) { h.rename("app.log", "app.log.1"); h.append("app.log", "b\n") })
	f(func(h *harness) { h.rename("app.log", "app.log.1"); h.withdraw() })
	f(func(h *harness) { h.remove("app.log") })
	f(func(h *harness) { h.remove("app.log"); h.withdraw() })
	f(func(h *harness) { h.append("app.log", "part of a line"); h.pass(time.Second); h.remove("app.log") })
}

// TestLastPart: a rotated file ends with an incomplete line, which is sent as a
// line when the file has no writer any more.
func TestLastPart(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\npart")
		h.start()
		h.rename("app.log", "app.log.1")
		h.pass(4 * time.Second)
		h.want("a")
		h.pass(3 * time.Second)
		h.want("a", "part")
		h.counts("weir_source_file_files", 0)
	})
}

// TestMaxWait: a file whose writer never closes it is closed after max_wait. The
// lines up to then are read. Later lines are counted, or a warning is logged.
func TestMaxWait(t *testing.T) {
	onlyLeases(t)
	scene(t, func(h *harness) {
		h.args.FileRotation.MaxWait = time.Minute
		w := h.opened("app.log")
		h.write(w, "a\n")
		h.start()
		h.rename("app.log", "app.log.1")
		h.pass(50 * time.Second)
		h.write(w, "b\n")
		h.pass(5 * time.Second)
		h.counts("weir_source_file_rotated_files", 1)
		h.pass(10 * time.Second)
		h.write(w, "too late\n")
		h.pass(10 * time.Second)
		h.must(w.Close())
		h.want("a", "b")
		h.counts("weir_source_file_rotated_files", 0)
		h.counts("weir_source_file_abandoned_files_total", 1)
		if n := strings.Count(h.node.Logs(), "still open for writing after file_rotation.max_wait"); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, h.node.Logs())
		}
	})
}

// TestMaxWaitInAnOutage: while receivers refuse lines, a deleted file is closed
// after max_wait, which frees its disk space, and its lines are counted as lost.
// A renamed file is not given up.
func TestMaxWaitInAnOutage(t *testing.T) {
	f := func(rotate func(h *harness), lost float64, want ...string) {
		t.Helper()
		scene(t, func(h *harness) {
			h.append("app.log", "a\n")
			h.start()
			h.sink.set(func() { h.sink.refuse = flowtest.ErrRefused })
			h.append("app.log", "b\n")
			h.pass(time.Second)
			h.append("app.log", "c\n")
			h.pass(time.Second)
			rotate(h)
			h.append("app.log", "d\n")
			h.pass(10 * time.Minute)
			h.sink.set(func() { h.sink.refuse = nil })
			h.pass(time.Minute)
			h.want(want...)
			h.counts("weir_source_file_lost_bytes_total", lost)
			h.counts("weir_source_file_rotated_files", 0)
			if logged := strings.Contains(h.node.Logs(), "lines are lost"); logged != (lost > 0) {
				t.Errorf("the loss is logged: %v", logged)
			}
		})
	}
	f(func(h *harness) { h.remove("app.log") }, 2, "a", "b", "d")
	f(func(h *harness) { h.rename("app.log", "app.log.1") }, 0, "a", "b", "c", "d")
}

// TestRestartWhileKept: weir stops or is killed while a renamed file is still
// written to. Reading continues, even if the file was moved to another directory,
// as soon as the target exists again.
func TestRestartWhileKept(t *testing.T) {
	f := func(to string, restart func(h *harness)) {
		t.Helper()
		scene(t, func(h *harness) {
			h.must(os.Mkdir(h.path("old"), 0o755))
			h.follow("*.log")
			h.args.FileMatch.Enabled = true
			w := h.opened("app.log")
			h.write(w, "a\n")
			h.start()
			h.rename("app.log", to)
			h.pass(11 * time.Second) // the target does not exist
			h.write(w, "b\n")
			h.pass(2 * time.Second)
			match := h.args.FileMatch
			restart(h)
			h.args.FileMatch = match
			h.stop()
			h.write(w, "c\n")
			h.start()
			h.pass(11 * time.Minute) // unused positions are removed
			h.write(w, "d\n")
			h.must(w.Close())
			h.append("app.log", "new\n")
			h.pass(11 * time.Second)
			h.want("a", "b", "c", "d", "new")
			h.counts("weir_source_file_lost_bytes_total", 0)
		})
	}
	names := []string{"app.log.1"}
	if runtime.GOOS == "linux" {
		names = append(names, "old/app.log-20250101")
	}
	for _, name := range names {
		f(name, func(h *harness) { h.stop(); h.start() })
		f(name, func(h *harness) { h.crash() })
	}
}

// TestCompressedWhileKept: the renamed file is compressed and removed while it is
// kept, and again after a restart.
func TestCompressedWhileKept(t *testing.T) {
	f := func(name string, down bool) {
		t.Helper()
		scene(t, func(h *harness) {
			w := h.opened("app.log")
			h.write(w, "a\n")
			h.start()
			h.rename("app.log", name)
			h.pass(time.Second)
			if down {
				h.stop()
			}
			h.write(w, "b\n")
			b, err := os.ReadFile(h.path(name))
			h.must(err)
			h.append(name+".gz", compressed(t, "gz", string(b)))
			h.remove(name)
			h.must(w.Close())
			h.append("app.log", "new\n")
			if down {
				h.start()
			}
			h.pass(10 * time.Second)
			h.want("a", "b", "new")
			h.counts("weir_source_file_rotated_files", 0)
			h.counts("weir_source_file_lost_bytes_total", 0)
		})
	}
	f("app.log.1", false)
	f("app.log.1", true)
	if runtime.GOOS == "linux" {
		f("saved.txt", true)
	}
}

// TestManyRotatedFiles: above a limit, idle files are closed although they have
// writers.
func TestManyRotatedFiles(t *testing.T) {
	onlyLeases(t)
	scene(t, func(h *harness) {
		const files = 30
		h.rotated = 20
		names := make([]string, files)
		for i := range names {
			names[i] = fmt.Sprintf("%04d.log", i)
			w := h.opened(names[i])
			defer w.Close()
			h.write(w, names[i]+"\n")
		}
		h.follow(names...)
		h.start()
		for _, name := range names {
			h.rename(name, name+".1")
		}
		h.pass(20 * time.Second)
		h.counts("weir_source_file_rotated_files", 20)
		h.counts("weir_source_file_abandoned_files_total", 10)
		if n := strings.Count(h.node.Logs(), "too many rotated files are open"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
	})
}

// TestManyUnreadFiles: rotated files that are not read because receivers refuse
// lines are closed above a limit, and opened again to be read.
func TestManyUnreadFiles(t *testing.T) {
	scene(t, func(h *harness) {
		const rotations = 40
		h.rotated = 20
		h.sink.refuse = flowtest.ErrRefused
		h.append("app.log", "000000\n")
		h.start()
		for i := range rotations {
			h.rename("app.log", fmt.Sprintf("app.log-%04d", i))
			h.append("app.log", fmt.Sprintf("%06d\n", i+1))
			h.pass(250 * time.Millisecond)
		}
		h.pass(3 * time.Second)
		h.counts("weir_source_file_rotated_files", 20)
		h.counts("weir_source_file_files", 21)
		b, err := os.ReadFile(h.path("app.log-0005"))
		h.must(err)
		h.append("app.log-0005.gz", compressed(t, "gz", string(b)))
		h.remove("app.log-0005")
		h.rename("app.log-0006", "app.log-0006.bak")
		h.sink.set(func() { h.sink.refuse = nil })
		h.pass(time.Minute)
		h.want(numbers("", 0, rotations)...)
		h.counts("weir_source_file_lost_bytes_total", 0)
		h.counts("weir_source_file_files", 1)
	})
}

// TestUnknownWriters: if it is unknown whether a file has a writer, the file is
// kept for max_wait, and nothing is logged.
func TestUnknownWriters(t *testing.T) {
	scene(t, func(h *harness) {
		h.hidden = true
		h.append("app.log", "a\n")
		h.start()
		h.rename("app.log", "app.log.1")
		h.pass(4 * time.Minute)
		h.append("app.log.1", "late\n")
		h.pass(30 * time.Second)
		h.counts("weir_source_file_rotated_files", 1)
		h.pass(time.Minute)
		h.want("a", "late")
		h.counts("weir_source_file_rotated_files", 0)
		h.counts("weir_source_file_abandoned_files_total", 0)
		if logs := h.node.Logs(); strings.Contains(logs, "level=WARN") {
			t.Errorf("got logs %s", logs)
		}
	})
}

// onlyLeases skips a test if it is unknown which files have writers.
func onlyLeases(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which files are open for writing")
	}
}
