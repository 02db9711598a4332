package file_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/file"
)

// wantHealth checks the state and the text of the health.
func (h *harness) wantHealth(state component.HealthState, says string) {
	h.t.Helper()
	if got := h.node.Health(); got.State != state || !strings.Contains(got.Message, says) {
		h.t.Errorf("got health %v %q, want %v with %q", got.State, got.Message, state, says)
	}
}

// TestCannotOpen: opening is retried if the system refuses to open a file because
// of missing permissions or descriptors. The file is then read from its
// beginning. Other files are read in the meantime.
func TestCannotOpen(t *testing.T) {
	f := func(refusal error, logged string) {
		t.Helper()
		t.Run(refusal.Error(), func(t *testing.T) {
			scene(t, func(h *harness) {
				var refuse atomic.Bool
				refuse.Store(true)
				h.open = func(path string) (*os.File, error) {
					if refuse.Load() && path == h.path("app.log") {
						return nil, &os.PathError{Op: "open", Path: path, Err: refusal}
					}
					return file.Open(path)
				}
				h.follow("app.log", "good.log")
				h.append("app.log", "a\n")
				h.append("good.log", "b\n")
				h.start()
				h.pass(10 * time.Second)
				h.want("b")
				h.wantHealth(component.Unhealthy, refusal.Error())
				if n := strings.Count(h.node.Logs(), logged); n != 1 {
					t.Errorf("it is logged %d times that it %s", n, logged)
				}
				h.append("app.log", "c\n")
				refuse.Store(false)
				h.pass(10 * time.Second)
				h.want("b", "a", "c")
				h.wantHealth(component.Healthy, "")
			})
		})
	}
	f(syscall.EACCES, "cannot follow a file")
	if runtime.GOOS != "windows" { // other systems have a different message
		f(syscall.EMFILE, "cannot open all files")
	}
}

// TestStarvedAtStart: if a file that was rotated while weir was down, or its
// copy, cannot be opened because of missing descriptors, opening is retried.
func TestStarvedAtStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it says it otherwise")
	}
	f := func(rotate func(h *harness)) {
		t.Helper()
		scene(t, func(h *harness) {
			h.append("app.log", "a\n")
			h.start()
			h.stop()
			h.append("app.log", "b\n")
			rotate(h)
			h.append("app.log", "c\n")
			var refuse atomic.Bool
			refuse.Store(true)
			h.open = func(path string) (*os.File, error) {
				if refuse.Load() && path == h.path("app.log.1") {
					return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
				}
				return file.Open(path)
			}
			h.start()
			h.pass(10 * time.Second)
			h.want("a")
			refuse.Store(false)
			h.pass(10 * time.Second)
			h.want("a", "b", "c")
			h.counts("weir_source_file_lost_bytes_total", 0)
		})
	}
	f(func(h *harness) { h.rename("app.log", "app.log.1") })
	f(func(h *harness) {
		b, err := os.ReadFile(h.path("app.log"))
		h.must(err)
		h.append("app.log.1", string(b))
		h.must(os.Truncate(h.path("app.log"), 0))
	})
}

// TestGoneAtStart: a file that was removed before a restart is not a problem, and
// the next file at its path is read.
func TestGoneAtStart(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.stop()
		h.remove("app.log")
		h.start()
		h.pass(10 * time.Second)
		h.wantHealth(component.Healthy, "")
		h.append("app.log", "b\nc\n")
		h.pass(10 * time.Second)
		h.want("a", "b", "c")
	})
}

// slow blocks the batches of one file until free is closed.
type slow struct {
	*sink
	file string
	free chan struct{}
}

func (s slow) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if strings.Contains(b.Stream[0].String(), s.file) {
		select {
		case <-s.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.sink.ConsumeLogs(ctx, b)
}

// TestSlowAndFast: a large file whose lines are not accepted does not delay the
// other files.
func TestSlowAndFast(t *testing.T) {
	scene(t, func(h *harness) {
		s := slow{h.sink, "slow.log", make(chan struct{})}
		to := flow.NewReceiver("slow", batch.SignalLogs, nil, nil)
		to.Set(s)
		h.args.ForwardTo = []*flow.Receiver{to}
		h.follow("slow.log", "fast.log")
		much := numbers(strings.Repeat("x", 1000), 1, 2000)
		h.append("slow.log", strings.Join(much, "\n")+"\n")
		h.append("fast.log", "0\n")
		h.start()
		want := []string{"0"}
		for i := range 5 {
			want = append(want, fmt.Sprint(i+1))
			h.append("fast.log", want[i+1]+"\n")
			h.pass(time.Second)
			h.want(want...)
		}
		h.sink.forget()
		close(s.free)
		await(2 * time.Minute)
		h.pass(2 * time.Minute)
		if diff := cmp.Diff(much, h.sink.lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestRefusalIsTold: the health and the page show which receiver refuses lines
// and since when. It is logged once when it has lasted for some time, and once
// when it ends.
func TestRefusalIsTold(t *testing.T) {
	scene(t, func(h *harness) {
		const begins, ends = "receivers refuse lines", "receivers take lines again"
		logged := func(begun, ended int) {
			t.Helper()
			if b, e := strings.Count(h.node.Logs(), begins), strings.Count(h.node.Logs(), ends); b != begun || e != ended {
				t.Errorf("it is logged %d times that it begins and %d times that it ends, want %d and %d", b, e, begun, ended)
			}
		}
		set := func(err error) { h.sink.set(func() { h.sink.refuse = err }) }
		h.start()
		// Short refusals are not reported.
		for range 5 {
			set(flowtest.ErrRefused)
			h.append("app.log", "a\n")
			h.pass(15 * time.Second)
			set(nil)
			h.pass(10 * time.Second)
		}
		h.wantHealth(component.Healthy, "")
		logged(0, 0)

		set(flowtest.ErrRefused)
		h.append("app.log", "a\nb\n")
		since := h.node.Clock.Now().Add(250 * time.Millisecond).UTC().Format(time.RFC3339)
		h.pass(time.Minute)
		told := "sink refused 2 lines: " + flowtest.ErrRefused.Error()
		h.wantHealth(component.Unhealthy, "lines are refused since "+since+": "+told)
		logged(1, 0)
		page := fmt.Sprintf("%+v", h.run.DebugInfo())
		if !strings.Contains(page, "Refused:true") || !strings.Contains(page, "Refusal:"+told) {
			t.Errorf("got the page %s", page)
		}
		h.pass(10 * time.Minute)
		logged(1, 0)
		set(nil)
		h.pass(10 * time.Second)
		h.wantHealth(component.Healthy, "all files are followed")
		logged(1, 1)
		if page := fmt.Sprintf("%+v", h.run.DebugInfo()); strings.Contains(page, told) {
			t.Errorf("got the page %s", page)
		}
	})
}
