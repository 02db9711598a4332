package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// A call that never returns, into a transform: weir ends within the timeout and
// says where how much is.
func TestAbandonedCall(t *testing.T) {
	bubble(t, func(l *harness) {
		l.options.ShutdownTimeout = 10 * time.Second
		hang := make(chan struct{})
		l.onTake = func(f *fake, _ *batch.Metrics) error {
			if f.id == "test.pass.b" {
				<-hang
			}
			return nil
		}
		l.start(chain)
		_, out := l.fake("test.source.a").get()
		go out.SendMetrics(context.Background(), samples(3))
		time.Sleep(time.Second)
		start := time.Now()
		err := l.end()
		stopped, ok := errors.AsType[*engine.StopError](err)
		if !ok || stopped.Lost() || len(stopped.Abandoned) != 1 || stopped.Abandoned[0] != "test.pass.b: calls into it have not returned: 1, with 3 samples and 0 lines" {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		close(hang)
	})
}

// TestLostAtShutdown: records are lost that a source had accepted and could not send
// when weir stopped, and those in the memory of a source that does not return.
func TestLostAtShutdown(t *testing.T) {
	bubble(t, func(l *harness) {
		l.onRun = func(ctx context.Context, f *fake) error {
			if <-ctx.Done(); f.id == "test.source.a" {
				f.o.Stats.Drop("stopped", 3)
				f.o.Stats.Drop("relabel", 5)
				f.o.Stats.DropLines("stopped", 4)
			}
			return nil
		}
		l.start(chain)
		l.fake("test.source.a").o.Stats.Drop("stopped", 7) // an earlier version
		err := l.end()
		stopped, ok := errors.AsType[*engine.StopError](err)
		if !ok || stopped.LostSamples != 3 || stopped.LostLines != 4 || err.Error() != "3 samples and 4 lines were lost, whose senders will not send them again" {
			t.Errorf("Run returned %v", err)
		}
	})
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.catalog.add(component.Registration{Name: "test.holder"})
		r, _ := l.catalog.Lookup("test.holder")
		build := r.Build
		r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c, err := build(o, args, previous)
			return holder{c}, err
		}
		l.catalog.regs["test.holder"] = r
		l.onRun = func(ctx context.Context, _ *fake) error { <-ctx.Done(); <-hang; return nil }
		l.start(`test.holder "a" { }`)
		err := l.end()
		stopped, ok := errors.AsType[*engine.StopError](err)
		if !ok || stopped.LostLines != 9 || !strings.Contains(err.Error(), "1 node was abandoned: test.holder.a: stop has not returned since") {
			t.Errorf("Run returned %v", err)
		}
		close(hang)
	})
}

type holder struct{ component.Component }

func (holder) Unaccepted() (samples, lines int) { return 0, 9 }

// A start that hangs, because a catalog does, does not keep weir from ending.
func TestStopWhileLoading(t *testing.T) {
	bubble(t, func(l *harness) {
		l.options.ShutdownTimeout = 10 * time.Second
		hang := make(chan struct{})
		r, _ := l.catalog.Lookup("test.sink")
		r.Trial = func(context.Context, component.Trial) *component.Rejection { <-hang; return nil }
		l.catalog.regs["test.sink"] = r
		l.start(`test.sink "a" { }`)
		start := time.Now()
		err := l.end()
		if stopped, ok := errors.AsType[*engine.StopError](err); !ok || stopped.Lost() || !strings.Contains(err.Error(), "the config was still being loaded") {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		close(hang)
	})
}
