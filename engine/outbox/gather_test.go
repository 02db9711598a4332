package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// TestDue: groups that several shards open at about the same time are written
// at the same time, and never after the deadline.
func TestDue(t *testing.T) {
	ms := func(n int64) time.Time { return time.UnixMilli(1735689600000 + n) }
	f := func(deadline time.Duration, opened, want int64) {
		t.Helper()
		if got := outbox.Due(ms(opened), deadline); !got.Equal(ms(want)) {
			t.Errorf("opened at %d ms, with a deadline of %s it is due at %s, want %d ms", opened, deadline, got.Sub(ms(0)), want)
		}
	}
	f(100*time.Millisecond, 0, 100)
	f(100*time.Millisecond, 3, 100)
	f(100*time.Millisecond, 24, 100)
	f(100*time.Millisecond, 25, 125)
	f(8*time.Millisecond, 1, 8)
	f(0, 1, 1)
}

// TestGathererPanics: waiting callers get an error, and later callers do not
// wait.
func TestGathererPanics(t *testing.T) {
	type group struct{ outbox.Group }
	var g outbox.Gatherer[*group]
	gr, stopping := &group{}, errors.New("stopping")
	o := componenttest.New(t, "sink.default").Options()
	es := outbox.NewEndpoints[*endpoint](&o, batch.SignalLogs, nil, nil)
	g.Init(es.NewRemote(&outbox.Kind{Stopping: stopping}, outbox.Ref{Name: "a"}, &outbox.RemoteSettings{}), outbox.Hooks[*group]{
		Close: func(*group) []journal.Block { panic("and again") },
		After: func() {
			g.Lock()
			defer g.Unlock()
			g.Begin(gr, time.Hour)
			panic("boom")
		},
	})
	g.Kick()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nobody hears of the panic")
			}
		}()
		g.Run(t.Context())
	}()
	if !g.Stopping {
		t.Fatal("it gathers, and nobody will commit that")
	}
	if err := gr.Wait(); err != stopping {
		t.Errorf("got %v", err)
	}
}
