package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// TestReplaceHungCall: a build or an update that has not returned within its limit is
// given up when the node is to have another version or other arguments. Whatever it
// makes later has no effect.
func TestReplaceHungCall(t *testing.T) {
	const node = "test.upass \"a\" {\n  value = %q\n%s}\n"
	f := func(name, more string, then func(l *harness, save func(value string))) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				hang := make(chan struct{})
				wait := func(value string) {
					if strings.HasPrefix(value, "hang") {
						<-hang
					}
				}
				l.onBuild = func(_ string, a *arguments, _ component.Options) error { wait(a.Value); return nil }
				if more == "" {
					l.onUpdate = func(_ string, a *arguments) error { wait(a.Value); return nil }
				}
				save := func(value string) {
					l.write(fmt.Sprintf(node, value, more))
					ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
					go func() {
						defer cancel()
						if err := l.e.Reload(ctx); err != nil {
							t.Errorf("a caller that waits for the call got %v", err)
						}
					}()
					time.Sleep(time.Second)
				}
				l.start(fmt.Sprintf(node, "1", more))
				save("hang")
				then(l, save)
				close(hang)
				time.Sleep(time.Minute)
				l.wantHealth("test.upass.a", component.Healthy, "")
				if a := l.info("test.upass.a").Arguments.(*arguments); strings.HasPrefix(a.Value, "hang") {
					t.Errorf("it runs with %q: a call that was given up took effect", a.Value)
				}
			})
		})
	}
	runs := func(l *harness, want string) {
		l.t.Helper()
		if a := l.info("test.upass.a").Arguments.(*arguments); a.Value != want {
			l.t.Errorf("it runs with %q, want %q", a.Value, want)
		}
	}
	for _, more := range []string{"", "rebuild = true\n"} {
		what := map[bool]string{true: "update", false: "build"}[more == ""]
		f(what+", saved after the limit", more, func(l *harness, save func(string)) {
			time.Sleep(time.Minute)
			l.wantHealth("test.upass.a", component.Unhealthy, what+" has not returned since")
			save("2")
			runs(l, "2")
		})
		f(what+", saved before the limit", more, func(l *harness, save func(string)) {
			save("2")
			runs(l, "1")
			time.Sleep(20 * time.Second)
			runs(l, "2")
		})
		f(what+", back to what runs", more, func(l *harness, save func(string)) {
			time.Sleep(time.Minute)
			save("1")
			runs(l, "1")
		})
		f(what+", several that hang", more, func(l *harness, save func(string)) {
			for i := range 3 {
				time.Sleep(time.Minute)
				save(fmt.Sprint("hang", i))
			}
			runs(l, "1")
			save("2")
			time.Sleep(20 * time.Second)
			runs(l, "2")
		})
		f(what+", the same again", more, func(l *harness, save func(string)) {
			time.Sleep(time.Minute)
			l.takeEvents()
			save("hang")
			time.Sleep(time.Minute)
			l.wantEvents("")
			save("2")
			runs(l, "2")
		})
	}
}

// TestReplaceHungFirstBuild: a new node whose first build does not return is built with
// other arguments.
func TestReplaceHungFirstBuild(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.onBuild = func(_ string, a *arguments, _ component.Options) error {
			if a.Value == "hang" {
				<-hang
			}
			return nil
		}
		const config = "test.source \"s\" {\n  forward_to = [test.pass.a.receiver]\n}\ntest.pass \"a\" {\n  value = %q\n}\n"
		l.start(fmt.Sprintf(config, "hang"))
		time.Sleep(time.Minute)
		l.wantHealth("test.pass.a", component.Unhealthy, "build has not returned since")
		if err := l.reload(fmt.Sprintf(config, "2")); err != nil {
			t.Fatal(err)
		}
		_, out := l.fake("test.source.s").get()
		if err := out.SendMetrics(context.Background(), samples(1)); err != nil {
			t.Errorf("the node does not accept samples: %v", err)
		}
		close(hang)
		time.Sleep(time.Minute)
		l.wantHealth("test.pass.a", component.Healthy, "")
	})
}

// TestReplaceStuckComponent: a component that does not return from a call with samples is
// replaced, and its successor gets the next samples.
func TestReplaceStuckComponent(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(chain)
		_, out := l.fake("test.source.a").get()
		stuckIn := l.fake("test.pass.b")
		hang := make(chan struct{})
		l.onTake = func(f *fake, _ *batch.Metrics) error {
			if f == stuckIn {
				<-hang
			}
			return nil
		}
		first := make(chan error, 1)
		go func() { first <- out.SendMetrics(context.Background(), samples(1)) }()
		synctest.Wait()
		began := time.Now()
		l.saved("version test.pass 2")
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		if err := out.SendMetrics(context.Background(), samples(1)); err != nil {
			t.Errorf("the successor does not accept samples: %v", err)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the reload and the samples waited for %s", waited)
		}
		if len(first) > 0 {
			t.Error("the first call has returned")
		}
		close(hang)
		if err := <-first; err != nil {
			t.Errorf("the first call failed: %v", err)
		}
	})
}

// TestFilesChangeDuringHungBuild: a file that changes while a build hangs that is given up
// is read by the component that stays.
func TestFilesChangeDuringHungBuild(t *testing.T) {
	bubble(t, func(l *harness) {
		path := filepath.Join(l.dir, "data")
		l.sourced(path)
		l.start(`test.usource "a" { }`)
		hang := make(chan struct{})
		defer close(hang)
		l.onBuild = func(string, *arguments, component.Options) error { <-hang; return nil }
		l.write("test.usource \"a\" {\n  rebuild = true\n}")
		go l.e.Reload(context.Background())
		time.Sleep(time.Minute)
		go l.e.FilesChanged(context.Background(), []string{path})
		time.Sleep(time.Second)
		l.takeEvents()
		if err := l.reload(`test.usource "a" { }`); err != nil {
			t.Fatal(err)
		}
		l.wantEvents("update test.usource.a")
	})
}

// TestHungCallsAreBounded: a node does not begin calls without end that do not return.
func TestHungCallsAreBounded(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.onBuild = func(_ string, a *arguments, _ component.Options) error {
			if a.Value != "" {
				<-hang
			}
			return nil
		}
		l.start(`test.pass "a" { }`)
		for i := range 20 {
			l.write(fmt.Sprintf("test.pass \"a\" {\n  value = \"%d\"\n}", i))
			go l.e.Reload(context.Background())
			time.Sleep(time.Minute)
		}
		if got := strings.Count(l.takeEvents(), "build test.pass.a"); got > 15 {
			t.Errorf("%d builds began", got)
		}
		close(hang)
		time.Sleep(5 * time.Minute)
		l.wantHealth("test.pass.a", component.Healthy, "")
	})
}
