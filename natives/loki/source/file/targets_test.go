package file_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/file"
)

// update applies other arguments to the component.
func (h *harness) update(edit func(*file.Arguments)) {
	h.t.Helper()
	a := *h.args
	a.Targets = slices.Clone(a.Targets)
	for i := range a.Targets {
		a.Targets[i] = maps.Clone(a.Targets[i])
	}
	edit(&a)
	h.must(a.Validate())
	h.args = &a
	h.must(h.run.Update(&a))
	h.pass(250 * time.Millisecond)
}

// labelled returns the received lines as "label line".
func (h *harness) labelled(label string) (out []string) {
	for _, e := range h.sink.entries() {
		_, v, _ := strings.Cut(e.labels, label+`="`)
		v, _, _ = strings.Cut(v, `"`)
		out = append(out, v+" "+e.line)
	}
	return out
}

func (h *harness) wantLabelled(label string, want ...string) {
	h.t.Helper()
	got := h.labelled(label)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOtherLabels: if a reload changes the labels of a target, nothing is
// repeated, neither then nor after a restart.
func TestOtherLabels(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.append("app.log", "b\n")
		h.update(func(a *file.Arguments) { a.Targets[0]["job"] = "k" })
		h.append("app.log", "c\n")
		h.pass(time.Second)
		h.wantLabelled("job", "j a", "k b", "k c")
		h.stop()
		h.args.Targets[0]["job"] = "l"
		h.append("app.log", "d\n")
		h.start()
		h.wantLabelled("job", "j a", "k b", "k c", "l d")
	})
}

func TestTwoTargetsOfOnePath(t *testing.T) {
	scene(t, func(h *harness) {
		h.follow("app.log", "app.log", "app.log")
		h.args.Targets[1]["job"] = "k"
		h.args.Targets[2]["__meta"] = "is no label"
		h.append("app.log", "a\n")
		h.start()
		h.wantLabelled("job", "j a", "k a")
	})
}

// TestLeavingTarget: a removed target is read to its end, including an incomplete
// last line. If it is added again, it continues at its position.
func TestLeavingTarget(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.append("app.log", "b\nc")
		targets := h.args.Targets
		h.update(func(a *file.Arguments) { a.Targets = nil })
		h.want("a", "b", "c")
		h.append("app.log", "\nd\n")
		h.pass(time.Minute)
		h.want("a", "b", "c")
		h.update(func(a *file.Arguments) { a.Targets = targets })
		h.want("a", "b", "c", "", "d")
	})
}

// TestReceiversChange: lines that a removed receiver had refused are sent to the
// new one, and not again to a receiver that has accepted them.
func TestReceiversChange(t *testing.T) {
	scene(t, func(h *harness) {
		stays, leaves := h.sink, newSink("leaves")
		h.args.ForwardTo = []*flow.Receiver{stays.to, leaves.to}
		leaves.refuse = flowtest.ErrRefused
		h.append("app.log", "a\n")
		h.start()
		leaves.to.Stop()
		h.pass(10 * time.Second)
		comes := newSink("comes")
		h.update(func(a *file.Arguments) { a.ForwardTo = []*flow.Receiver{stays.to, comes.to} })
		h.append("app.log", "b\n")
		h.pass(10 * time.Second)
		for _, s := range []*sink{stays, comes} {
			if diff := cmp.Diff([]string{"a", "b"}, s.lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", s.to.Node(), diff)
			}
		}
		h.stop()
		stays.forget()
		h.start()
		h.want()
	})
}

// TestStopInAnOutage: a blocking receiver delays the stop by two seconds, and
// lines that it did not accept are sent again.
func TestStopInAnOutage(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\nb\n")
		h.sink.block = true
		h.start()
		begin := time.Now()
		h.stop()
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("it took %s to stop", d)
		}
		h.sink.block = false
		h.start()
		h.want("a", "b")
	})
}

// TestRefused: no file is read while a receiver refuses lines, and a file that is
// rotated and removed in the meantime is not lost.
func TestRefused(t *testing.T) {
	scene(t, func(h *harness) {
		h.sink.refuse = flowtest.ErrRefused
		h.append("app.log", "a\n")
		h.start()
		h.append("app.log", "b\n")
		h.remove("app.log")
		h.append("app.log", "c\n")
		h.pass(10 * time.Second)
		h.remove("app.log")
		h.append("app.log", "d\n")
		h.pass(10 * time.Second)
		h.counts("weir_source_file_refused_bytes", 1)
		h.counts("weir_source_file_read_lines_total", 1)
		h.sink.set(func() { h.sink.refuse = nil })
		h.pass(10 * time.Second)
		h.want("a", "b", "c", "d")
		h.counts("weir_source_file_refused_bytes", 0)
		h.counts("weir_source_file_lost_bytes_total", 0)
	})
}

func TestFileMatch(t *testing.T) {
	scene(t, func(h *harness) {
		h.follow("d/*.log*")
		h.args.Targets[0]["__path_exclude__"] = h.path("d/x*")
		h.args.FileMatch.Enabled = true
		h.must(os.Mkdir(h.path("d"), 0o755))
		h.append("d/a.log", "a1\n")
		h.append("d/x.log", "excluded\n")
		h.start()
		h.append("d/b.log", "b1\n")
		h.pass(11 * time.Second)
		h.wantLabelled("filename", h.path("d/a.log")+" a1", h.path("d/b.log")+" b1")
		// The pattern also matches the rotated file, which is the same file.
		h.sink.forget()
		h.append("d/a.log", "a2\n")
		h.rename("d/a.log", "d/a.log.1")
		h.append("d/a.log", "a3\n")
		h.pass(20 * time.Minute)
		h.wantLabelled("filename", h.path("d/a.log")+" a2", h.path("d/a.log")+" a3")
		h.stop()
		h.start()
		h.pass(time.Minute)
		h.wantLabelled("filename", h.path("d/a.log")+" a2", h.path("d/a.log")+" a3")
	})
}

func TestTailFromEnd(t *testing.T) {
	scene(t, func(h *harness) {
		h.args.TailFromEnd = true
		h.append("app.log", strings.Repeat("old\n", 5000)+"part")
		h.start()
		h.want()
		h.append("app.log", " of a line\nnew\n")
		h.pass(time.Second)
		h.want("part of a line", "new")
		h.rename("app.log", "app.log.1")
		h.append("app.log", "first\n")
		h.pass(time.Second)
		h.want("part of a line", "new", "first")
		h.stop()
		h.append("app.log", "down\n")
		h.start()
		h.want("part of a line", "new", "first", "down")
	})
}

// TestTailFromEndOfMatchedFiles: as in Alloy, every file without a position is
// read from its end, whether it exists at the start or appears later. A file that
// follows a rotation is read from its beginning.
func TestTailFromEndOfMatchedFiles(t *testing.T) {
	f := func(start func(h *harness)) {
		t.Helper()
		scene(t, func(h *harness) {
			h.args.TailFromEnd = true
			h.append("a.log", "old\n")
			start(h)
			h.append("b.log", "old\n")
			h.pass(11 * time.Second)
			h.append("a.log", "a\n")
			h.append("b.log", "b\n")
			h.pass(time.Second)
			h.rename("a.log", "a.log.1")
			h.append("a.log", "first\n")
			h.pass(11 * time.Second)
			h.wantLabelled("filename", h.path("a.log")+" a", h.path("a.log")+" first", h.path("b.log")+" b")
		})
	}
	f(func(h *harness) {
		h.follow("*.log")
		h.args.FileMatch.Enabled = true
		h.start()
	})
	f(func(h *harness) { // like local.file_match
		h.follow("a.log")
		h.start()
		h.update(func(a *file.Arguments) {
			a.Targets = append(a.Targets, map[string]string{"__path__": h.path("b.log"), "job": "j"})
		})
	})
}

func TestCannotFollow(t *testing.T) {
	f := func(prepare func(h *harness), want string) {
		t.Helper()
		scene(t, func(h *harness) {
			prepare(h)
			h.start()
			h.pass(5 * time.Second)
			if got := h.node.Health(); got.State != component.Unhealthy || !strings.Contains(got.Message, want) {
				t.Errorf("got health %v %q, want %q", got.State, got.Message, want)
			}
			if n := strings.Count(h.node.Logs(), "cannot follow a file"); n > 1 {
				t.Errorf("it is logged %d times", n)
			}
			h.append("good.log", "a\n")
			h.pass(time.Second)
			h.must(os.RemoveAll(h.path("app.log")))
			h.append("app.log", "b\n")
			h.pass(5 * time.Second)
			if got := h.node.Health(); got.State != component.Healthy && want != "no label" {
				t.Errorf("got health %v %q", got.State, got.Message)
			}
			if got := h.sink.lines(); len(got) == 0 || got[0] != "a" {
				t.Errorf("got %q, want the lines of others", got)
			}
		})
	}
	f(func(h *harness) { h.follow("app.log", "good.log"); h.must(os.Mkdir(h.path("app.log"), 0o755)) }, "it is a directory; name a file")
	f(func(h *harness) {
		h.follow("good.log")
		h.args.Targets = append(h.args.Targets, map[string]string{"job": "j"})
	}, "no label")
	if runtime.GOOS != "windows" {
		f(func(h *harness) { h.follow("app.log", "good.log"); h.must(os.Symlink("app.log", h.path("app.log"))) }, "cannot look at")
	}
}

// TestNowhere: the component waits for a directory that does not exist.
func TestNowhere(t *testing.T) {
	scene(t, func(h *harness) {
		h.follow("d/e/app.log")
		h.start()
		h.pass(time.Second)
		h.must(os.MkdirAll(h.path("d/e"), 0o755))
		h.append("d/e/app.log", "a\n")
		h.pass(time.Second)
		h.want("a")
		if h.node.Health().State != component.Healthy {
			t.Errorf("got health %+v", h.node.Health())
		}
	})
}

// TestLinks: a symbolic link is followed, and a changed link is a rotation.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need privileges")
	}
	scene(t, func(h *harness) {
		for _, d := range []string{"one", "two"} {
			h.must(os.Mkdir(h.path(d), 0o755))
		}
		h.append("one/0.log", "a\n")
		h.must(os.Symlink("one/0.log", h.path("app.log")))
		h.start()
		h.append("one/0.log", "b\n")
		h.rename("one/0.log", "one/0.log.20250101-101010")
		h.append("one/0.log", "c\n")
		h.pass(time.Second)
		h.want("a", "b", "c")
		h.stop()
		h.append("one/0.log", "d\n")
		h.rename("one/0.log", "one/0.log.20250102-101010")
		h.append("two/0.log", "e\n")
		h.remove("app.log")
		h.must(os.Symlink("two/0.log", h.path("app.log")))
		h.start()
		h.want("a", "b", "c", "d", "e")
	})
}

func TestLegacyPositions(t *testing.T) {
	f := func(text string, onError file.OnPositionsFileError, want ...string) {
		t.Helper()
		scene(t, func(h *harness) {
			h.node.Clock.Advance(time.Hour * 24 * 365 * 20)
			h.append("app.log", "a\nb\nc\n")
			h.append("legacy.yml", strings.ReplaceAll(text, "PATH", h.path("app.log")))
			h.args.LegacyPositionsFile = h.path("legacy.yml")
			h.args.OnPositionsFileError = onError
			h.start()
			h.want(want...)
			h.pass(2 * time.Second)
			_, err := os.Stat(h.path("legacy.yml"))
			if gone := os.IsNotExist(err); gone != (onError == "restart_from_beginning") {
				t.Errorf("the positions file is gone: %v", gone)
			}
			h.append("app.log", "d\n")
			h.pass(time.Second)
			if onError != "skip" {
				want = append(want, "d")
			}
			h.want(want...)
			h.stop()
			h.start()
			h.pass(time.Second)
			h.want(want...)
		})
	}
	f("positions:\n  PATH: \"2\"\n", "restart_from_beginning", "b", "c")
	f("positions:\n  ? path: PATH\n    labels: '{job=\"j\"}'\n  : \"4\"\n", "restart_from_beginning", "c")
	f("positions:\n  ? path: PATH\n    labels: '{}'\n  : \"4\"\n", "restart_from_beginning", "c")
	f("positions:\n  ? path: PATH\n    labels: '{job=\"k\"}'\n  : \"4\"\n", "restart_from_beginning", "a", "b", "c")
	f("positions:\n  PATH: \"200\"\n", "restart_from_beginning", "a", "b", "c")
	f("positions: {}\n", "restart_from_beginning", "a", "b", "c")
	f("positions:\n  PATH: \"x\"\n", "restart_from_end")
	f("positions:\n  PATH: \"x\"\n", "skip")
	f("{", "restart_from_end")
}

func TestValidate(t *testing.T) {
	f := func(edit func(*file.Arguments), want ...string) {
		t.Helper()
		a := file.Registration().NewArgs().(*file.Arguments)
		edit(a)
		err := a.Validate()
		if (err != nil) != (len(want) > 0) {
			t.Errorf("got %v, want %q", err, want)
		}
		for _, w := range want {
			if !strings.Contains(fmt.Sprint(err), w) {
				t.Errorf("got %v, want it to say %q", err, w)
			}
		}
	}
	f(func(*file.Arguments) {})
	f(func(a *file.Arguments) { a.Encoding = "UTF-16" })
	f(func(a *file.Arguments) { a.Encoding = "KLINGON" }, `encoding "KLINGON" is not known`)
	f(func(a *file.Arguments) { a.FileWatch = file.FileWatch{} }, "min_poll_frequency is 0s", "max_poll_frequency is 0s")
	f(func(a *file.Arguments) { a.FileMatch = file.FileMatch{IgnoreOlderThan: -1} }, "sync_period is 0s", "ignore_older_than is -1ns")
	f(func(a *file.Arguments) { a.Decompression.InitialDelay = -1 }, "initial_delay is -1ns")
	f(func(a *file.Arguments) { a.FileRotation = file.FileRotation{} }, "file_rotation.idle_timeout is 0s, must be greater than 0", "file_rotation.max_wait is 0s, must be greater than 0")
	f(func(a *file.Arguments) { a.FileRotation.IdleTimeout = -1 }, "file_rotation.idle_timeout is -1ns, must be greater than 0")
	f(func(a *file.Arguments) { a.FileRotation.IdleTimeout = time.Hour }, "file_rotation.max_wait is 5m0s, must not be less than idle_timeout (1h0m0s)")
	f(func(a *file.Arguments) {
		a.FileMatch.Enabled = true
		a.Targets = []map[string]string{{"__path__": "/x["}}
	}, `targets[0]: __path__ "/x[" is no pattern`)
}

func TestDebugInfo(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\nb")
		h.start()
		h.sink.set(func() { h.sink.hold = true })
		h.append("app.log", "c\nd")
		h.pass(2 * time.Second)
		got := fmt.Sprintf("%+v", h.run.DebugInfo())
		want := fmt.Sprintf(`{Files:[{Path:%[1]s Labels:{job="j"} File:%[1]s Offset:5 Size:6 Acked:2 Rotated:false Closed:false Refused:false RefusedSince:0001-01-01 00:00:00 +0000 UTC Refusal: Error:}]}`, h.path("app.log"))
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		h.counts("weir_source_file_lag_bytes", 1)
		h.counts("weir_source_file_files", 1)
	})
}

// TestDebugInfoOfABusyFile: the page and the metrics show the progress of a file
// that is being read at every check.
func TestDebugInfoOfABusyFile(t *testing.T) {
	scene(t, func(h *harness) {
		const batch = 256 << 10
		slow := make(chan time.Time)
		h.sink.slow = slow
		h.append("app.log", strings.Repeat(strings.Repeat("x", 255)+"\n", 4*batch/256))
		h.start()
		for _, lag := range []float64{3 * batch, 2 * batch} {
			slow <- time.Time{} // the next batch is in flight when this returns
			h.pass(2 * time.Second)
			h.counts("weir_source_file_lag_bytes", lag)
		}
	})
}
