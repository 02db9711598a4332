package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// A component reports its health again and again, with a new time and often
// with a new message. The state lasts since its first report all the same.
func TestHealthLastsSinceTheStateBegan(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(`test.sink "a" { }`)
		f := l.fake("test.sink.a")
		report := func(s component.HealthState, message string) {
			f.o.Health(component.Health{State: s, Message: message, Time: time.Now()})
		}
		want := func(s component.HealthState, message string, since time.Time) {
			t.Helper()
			l.wantHealth("test.sink.a", s, message)
			if got := l.info("test.sink.a").Health.Time; !got.Equal(since) {
				t.Errorf("%s since %s, want %s", s, got, since)
			}
		}
		started := time.Now()
		time.Sleep(time.Minute)
		report(component.Healthy, "sending")
		want(component.Healthy, "sending", started)
		time.Sleep(time.Minute)
		began := time.Now()
		for _, message := range []string{"refused", "refused", "timed out"} {
			report(component.Unhealthy, message)
			want(component.Unhealthy, message, began)
			time.Sleep(5 * time.Second)
		}
		// The last error is as old as its last report.
		if got, want := l.info("test.sink.a").LastError.Time, time.Now().Add(-5*time.Second); !got.Equal(want) {
			t.Errorf("the last error is of %s, want %s", got, want)
		}
		// The node is healthy since now, and not since Run was called.
		report(component.Healthy, "sending")
		want(component.Healthy, "sending", time.Now())
	})
}

// A node that cannot be built for one reason after another does not work since
// the first of them.
func TestHealthLastsOverReasons(t *testing.T) {
	bubble(t, func(l *harness) {
		var reason atomic.Value // a string
		l.onBuild = func(string, *arguments, component.Options) error { return errors.New(reason.Load().(string)) }
		reason.Store("first")
		l.start(`test.sink "a" { }`)
		l.wantHealth("test.sink.a", component.Unhealthy, "first")
		began := l.info("test.sink.a").Health.Time
		reason.Store("second")
		time.Sleep(time.Minute)
		synctest.Wait()
		l.wantHealth("test.sink.a", component.Unhealthy, "second")
		if got := l.info("test.sink.a").Health.Time; !got.Equal(began) {
			t.Errorf("unhealthy since %s, want %s", got, began)
		}
	})
}

// The message of a healthy component is shown: it tells more than that it runs.
func TestHealthShowsWhatAHealthyComponentSays(t *testing.T) {
	bubble(t, func(l *harness) {
		l.onRun = func(ctx context.Context, f *fake) error {
			f.o.Health(component.Health{State: component.Healthy, Message: "degraded: half of it is missing"})
			<-ctx.Done()
			return nil
		}
		l.start(`test.sink "a" { }`)
		l.wantHealth("test.sink.a", component.Healthy, "degraded: half of it is missing")
	})
}
