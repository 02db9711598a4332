package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// tried has versions of test.sink and remembers which of them was built last.
type tried struct {
	l        *harness
	lastGood *component.Registration
	builds   atomic.Value // the version
}

// version returns a version of test.sink, which fails its trial with the error.
func (v *tried) version(name string, fails error) component.Registration {
	r := component.Registration{Name: "test.sink", Version: name, Accepts: batch.SignalMetrics, Exports: receiverExports{}}
	r.NewArgs = func() any { return &arguments{} }
	r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
		v.builds.Store(name)
		return v.l.build(o, args, previous)
	}
	r.Trial = func(context.Context, component.Trial) *component.Rejection {
		if fails == nil {
			return nil
		}
		return &component.Rejection{Err: fails, LastGood: v.lastGood}
	}
	return r
}

// save puts a version into the catalog.
func (v *tried) save(r component.Registration) {
	v.l.catalog.mu.Lock()
	defer v.l.catalog.mu.Unlock()
	v.l.catalog.regs[r.Name] = r
}

func (v *tried) wantRuns(t *testing.T, version string) {
	t.Helper()
	if got := v.l.info("test.sink.a").Version; got != version {
		t.Errorf("version %s runs, want %s", got, version)
	}
	if got := v.builds.Load(); got != version {
		t.Errorf("version %s was built last, want %s", got, version)
	}
}

func triedVersions(l *harness) *tried {
	return &tried{l: l}
}

var errTrial = errors.New("a_test:2: test \"marks\" failed")

const passedInstead = `running version 1; 2 refused by test: a_test:2: test "marks" failed`

// A version that fails its trial at the start is replaced by the last one that
// passed, until a version passes again.
func TestTrialAtStart(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		last := v.version("1", nil)
		last.Trial = nil
		v.lastGood = &last
		v.save(v.version("2", errTrial))
		l.start(`test.sink "a" { }`)
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, passedInstead)
		l.wantSaid("started c.alloy (… ms), 1 node, 1 failed\ncannot reload test.sink.a: " + passedInstead)

		// Nothing is said again while nothing changes, and a config change reaches
		// the version that runs.
		if err := l.reload("test.sink \"a\" {\n  value = \"x\"\n}"); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, passedInstead)
		if a, _ := l.fake("test.sink.a").get(); a.Value != "x" {
			t.Errorf("the version that runs has value %q, want x", a.Value)
		}
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")

		// A node that is added later must not run the rejected version either.
		if err := l.reload("test.sink \"a\" {\n  value = \"x\"\n}\ntest.sink \"b\" { }"); err != nil {
			t.Fatal(err)
		}
		if got := l.info("test.sink.b").Version; got != "1" {
			t.Errorf("the new node runs version %s, want 1", got)
		}

		v.save(v.version("3", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "3")
		l.wantHealth("test.sink.a", component.Healthy, "")
	})
}

// With no version that has passed, the version that fails runs, and its health
// reports that until it is repaired.
func TestTrialWithoutLastGood(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", errTrial))
		const want = `running version 1 although it was refused by test, because no version has passed: a_test:2: test "marks" failed`
		l.start(`test.sink "a" { }`)
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, want)
		l.takeLines()
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.sink.a", component.Unhealthy, want)
		l.wantSaid("")

		// Another version that fails does not replace it.
		v.save(v.version("2", errTrial))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, `running version 1; 2 refused by test: a_test:2: test "marks" failed`)

		v.save(v.version("3", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "3")
		l.wantHealth("test.sink.a", component.Healthy, "")
	})
}

// Only the new version has the arguments of the config.
func TestTrialOtherArguments(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		last := v.version("1", nil)
		last.Trial = nil
		last.NewArgs = func() any { return &struct{}{} }
		v.lastGood = &last
		v.save(v.version("2", errTrial))
		l.start("test.sink \"a\" {\n  value = \"new\"\n}")
		v.wantRuns(t, "2")
		l.wantHealth("test.sink.a", component.Unhealthy, `does not fit the config (`)
		l.wantHealth("test.sink.a", component.Unhealthy, `c.alloy:2:3: `)
		l.wantHealth("test.sink.a", component.Unhealthy, `running version 2 although it was refused by test, because version 1, the last good one, does not fit`)
		before := l.info("test.sink.a").Health.Message
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.sink.a", component.Unhealthy, before)
	})
}

// A version is rejected together with the config that needs it: what ran keeps
// running as it was.
func TestTrialOfReload(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		first := v.version("1", nil)
		first.NewArgs = func() any { return &arguments{} }
		v.save(first)
		l.start("test.sink \"a\" {\n  value = \"old\"\n}")
		v.wantRuns(t, "1")

		type more struct {
			arguments
			Fresh string `alloy:"fresh,attr,optional"`
		}
		second := v.version("2", errTrial)
		second.NewArgs = func() any { return &more{} }
		v.save(second)
		if err := l.reload("test.sink \"a\" {\n  fresh = \"new\"\n}"); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, "running version 1 with its old arguments; 2 refused by test: ")
		if a, _ := l.fake("test.sink.a").get(); a.Value != "old" {
			t.Errorf("the version that runs has value %q, want old", a.Value)
		}
	})
}

// A component that failed is not replaced by a version that was rejected.
func TestTrialAfterCrash(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		crash := make(chan error)
		l.onRun = func(ctx context.Context, _ *fake) error {
			select {
			case err := <-crash:
				return err
			case <-ctx.Done():
				return nil
			}
		}
		v.save(v.version("1", nil))
		l.start(`test.sink "a" { }`)
		v.save(v.version("2", errTrial))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		crash <- errors.New("oh no")
		time.Sleep(time.Minute)
		v.wantRuns(t, "1")
	})
}

// TestSlowTrial: while a trial runs, the version before keeps running, a new node
// waits, and other nodes are reloaded. The trial's verdict is followed when it is
// known.
func TestSlowTrial(t *testing.T) {
	const one, both = "test.sink \"a\" { }\ntest.uvalue \"other\" {\n  value = %q\n}\n", "test.sink \"new\" { }\n"
	f := func(name string, verdict error, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				v := triedVersions(l)
				v.save(v.version("1", nil))
				l.start(fmt.Sprintf(one, "1"))
				second := v.version("2", verdict)
				ended := make(chan struct{})
				try := second.Trial
				second.Trial = func(ctx context.Context, c component.Trial) *component.Rejection {
					select {
					case <-ended:
						return try(ctx, c)
					case <-ctx.Done():
						return &component.Rejection{Err: context.Cause(ctx)}
					}
				}
				v.save(second)
				saved := make(chan error)
				go func() { saved <- l.e.FilesChanged(context.Background(), []string{"x.lua"}) }()
				synctest.Wait()
				time.Sleep(time.Second)
				synctest.Wait()

				began := time.Now()
				reloaded := make(chan error)
				l.write(fmt.Sprintf(one, "2") + both)
				go func() { reloaded <- l.e.Reload(context.Background()) }()
				time.Sleep(time.Second)
				synctest.Wait()
				if a, _ := l.fake("test.uvalue.other").get(); a.Value != "2" {
					t.Errorf("%s after the reload, the other node has value %q", time.Since(began), a.Value)
				}
				v.wantRuns(t, "1")
				l.wantHealth("test.sink.a", component.Healthy, "")
				l.wantHealth("test.sink.new", component.Unknown, "waits for the tests of test.sink")

				close(ended)
				for _, c := range []chan error{saved, reloaded} {
					if err := <-c; err != nil {
						t.Error(err)
					}
				}
				synctest.Wait()
				if got := l.info("test.sink.a").Version; got != want {
					t.Errorf("version %s runs, want %s", got, want)
				}
				if got := l.info("test.sink.new").Version; got != "2" {
					t.Errorf("the new node runs version %s, want 2", got)
				}
				if verdict != nil {
					l.wantHealth("test.sink.a", component.Unhealthy, "running version 1; 2 refused by test: ")
				}
			})
		})
	}
	f("passes", nil, "2")
	f("fails", errTrial, "1")
}

// TestCanary: nobody who reloads waits for a canary, and it ends when weir stops.
func TestCanary(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", nil))
		l.start(`test.sink "a" { }`)
		second := v.version("2", nil)
		promoted := make(chan struct{})
		second.Trial = func(ctx context.Context, c component.Trial) *component.Rejection {
			c.Begin(component.StepTest)
			c.Begin(component.StepCanary)
			select {
			case <-promoted:
				return nil
			case <-ctx.Done():
				return &component.Rejection{Err: context.Cause(ctx)}
			}
		}
		v.save(second)
		began := time.Now()
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the reload took %s", took)
		}
		v.wantRuns(t, "1")
		time.Sleep(time.Hour)
		close(promoted)
		synctest.Wait()
		v.wantRuns(t, "2")

		third := second
		third.Version = "3"
		promoted = make(chan struct{})
		v.save(third)
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if err := l.end(); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("weir took %s to stop", took)
		}
		l.stop = nil
	})
}

// Trials that do not end cost the start a bounded time, all together, and those
// of several versions run at once.
func TestTrialLimit(t *testing.T) {
	bubble(t, func(l *harness) {
		config := ""
		for i := range 50 {
			name := fmt.Sprintf("test.slow%d", i)
			r := component.Registration{Name: name, Version: "1", NewArgs: func() any { return &arguments{} }, Build: l.build}
			r.Trial = func(ctx context.Context, _ component.Trial) *component.Rejection {
				<-ctx.Done()
				return &component.Rejection{Err: context.Cause(ctx)}
			}
			l.catalog.regs[name] = r
			config += name + " \"a\" { }\n"
		}
		began := time.Now()
		l.start(config)
		time.Sleep(10 * time.Second) // of the bubble
		synctest.Wait()
		l.wantHealth("test.slow49.a", component.Unhealthy, "the tests of all components together took longer than 10s")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the start took %s, want 10s", took)
		}
	})
}

// A signal ends a start that waits for trials.
func TestTrialStopped(t *testing.T) {
	bubble(t, func(l *harness) {
		r := component.Registration{Name: "test.slow", Version: "1", NewArgs: func() any { return &arguments{} }, Build: l.build}
		r.Trial = func(ctx context.Context, _ component.Trial) *component.Rejection {
			<-ctx.Done()
			return &component.Rejection{Err: context.Cause(ctx)}
		}
		l.catalog.regs["test.slow"] = r
		l.start(`test.slow "a" { }`)
		if err := l.end(); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		l.wantEvents("")
		l.stop = nil
	})
}

// A panic in a trial is a rejection.
func TestTrialPanics(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		r := v.version("1", nil)
		r.Trial = func(context.Context, component.Trial) *component.Rejection { panic("oh no") }
		v.save(r)
		l.start(`test.sink "a" { }`)
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, "panicked: oh no")
	})
}

// A new version that cannot be built is refused as well, and counted by step.
func TestBuildRefused(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1111111aaaaa", nil))
		l.start(`test.sink "a" { }`)
		l.mu.Lock()
		l.onBuild = func(string, *arguments, component.Options) error { return errors.New("cannot open it") }
		l.mu.Unlock()
		v.save(v.version("2222222bbbbb", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		const want = "running version 1111111; 2222222 refused by build: cannot open it"
		l.wantHealth("test.sink.a", component.Unhealthy, want)
		l.wantSaid("started c.alloy (… ms), 1 node\ncannot reload test.sink.a: " + want)
		if got, want := gather(t, l.registry), `weir_engine_reload_refusals_total{step="build"} 1`; !strings.Contains(got, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	})
}

// A trial that takes long goes on while other changes are made, is begun once, knows
// the component that runs, and ends when its version is no longer wanted.
func TestLongTrial(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", nil))
		const config = "test.sink \"a\" { }\ntest.uvalue \"other\" {\n  value = %q\n}\n"
		l.start(fmt.Sprintf(config, "1"))

		var begun atomic.Int32
		var running atomic.Value
		ended := make(chan error, 1)
		second := v.version("2", nil)
		second.Trial = func(ctx context.Context, c component.Trial) *component.Rejection {
			begun.Add(1)
			running.Store(c)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return &component.Rejection{Err: ctx.Err()}
		}
		v.save(second)
		go func() { _ = l.e.FilesChanged(context.Background(), []string{"x.lua"}) }()
		synctest.Wait()
		time.Sleep(time.Second)
		for i := range 3 {
			l.write(fmt.Sprintf(config, fmt.Sprint(i)))
			go func() { _ = l.e.Reload(context.Background()) }()
			time.Sleep(time.Minute)
			synctest.Wait()
			if a, _ := l.fake("test.uvalue.other").get(); a.Value != fmt.Sprint(i) {
				t.Errorf("the other node has value %q, want %d", a.Value, i)
			}
		}
		if n := begun.Load(); n != 1 {
			t.Errorf("the trial was begun %d times, want once", n)
		}
		c, _ := running.Load().(component.Trial)
		if current, _ := l.e.GetComponent("test.sink.a"); c.Node != "test.sink.a" || c.Running == nil || c.Running != current {
			t.Errorf("got a trial for %+v, want one for test.sink.a and its component", c)
		}
		v.wantRuns(t, "1")

		v.save(v.version("3", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the trial ended with %v", err)
		}
		synctest.Wait()
		v.wantRuns(t, "3")
		l.wantHealth("test.sink.a", component.Healthy, "")
	})
}
