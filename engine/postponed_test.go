package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// needsRunning returns version 2 of test.sink, whose trial needs a running component and
// passes when promoted is closed. last runs until then.
func needsRunning(v *tried, last *component.Registration, promoted chan struct{}) component.Registration {
	r := v.version("2", nil)
	r.Trial = func(ctx context.Context, t component.Trial) *component.Rejection {
		if t.Running == nil {
			return &component.Rejection{LastGood: last}
		}
		t.Begin(component.StepCanary)
		select {
		case <-promoted:
			return nil
		case <-ctx.Done():
			return &component.Rejection{Step: component.StepCanary, Err: context.Cause(ctx)}
		}
	}
	return r
}

// If the trial of a version needs a running component at the start, the last good version
// runs, and then the trial begins.
func TestPostponedTrial(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		one := v.version("1", nil)
		promoted := make(chan struct{})
		v.save(needsRunning(v, &one, promoted))
		l.start(`test.sink "a" { }`)
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Healthy, "running")
		l.wantSaid("started c.alloy (… ms), 1 node")
		reloads := l.e.Reloads()
		last := reloads[len(reloads)-1]
		if len(last.Nodes) != 1 || last.Outcome != "in progress" || last.Nodes[0].Step != component.StepCanary || last.Nodes[0].From != "1" || last.Nodes[0].To != "2" {
			t.Errorf("got the record %+v, want a canary that is in progress", last)
		}

		// A node that is added later does the same.
		if err := l.reload("test.sink \"a\" { }\ntest.sink \"b\" { }"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := l.info("test.sink.b"); got.Version != "1" || got.Trial == nil || got.Trial.Step != component.StepCanary {
			t.Errorf("the new node runs version %s with the trial %+v, want version 1 and a canary", got.Version, got.Trial)
		}
		close(promoted)
		synctest.Wait()
		v.wantRuns(t, "2")
		if got := l.info("test.sink.b").Version; got != "2" {
			t.Errorf("the new node runs version %s, want 2", got)
		}
	})
}

// A version runs without a trial if nothing can run before it.
func TestPostponedTrialInVain(t *testing.T) {
	f := func(name string, prepare func(l *harness, v *tried, one *component.Registration), again bool) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				v := triedVersions(l)
				one := v.version("1", nil)
				v.save(needsRunning(v, &one, nil))
				prepare(l, v, &one)
				l.start("test.sink \"a\" {\n  value = \"x\"\n}")
				if again {
					v.wantNothing(t)
					if err := l.changed(); err != nil {
						t.Fatal(err)
					}
				}
				v.wantRuns(t, "2")
				l.wantHealth("test.sink.a", component.Healthy, "running")
			})
		})
	}
	f("does not fit", func(l *harness, v *tried, one *component.Registration) {
		one.NewArgs = func() any { return &struct{}{} }
	}, false)
	f("cannot be built", func(l *harness, v *tried, one *component.Registration) {
		one.Build = func(component.Options, any, component.Component) (component.Component, error) {
			return nil, errors.New("no")
		}
	}, true)
}

// wantNothing fails the test if a version runs.
func (v *tried) wantNothing(t *testing.T) {
	t.Helper()
	if got := v.builds.Load(); got != nil {
		t.Errorf("version %s was built", got)
	}
}

// A version that is saved because the running one crashes runs without a trial.
func TestPostponedTrialAfterCrash(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		one := v.version("1", nil)
		crash := make(chan error)
		l.onRun = func(ctx context.Context, _ *fake) error {
			select {
			case err := <-crash:
				return err
			case <-ctx.Done():
				return nil
			}
		}
		v.save(one)
		l.start(`test.sink "a" { }`)
		crash <- errors.New("oh no")
		synctest.Wait()
		v.save(needsRunning(v, &one, nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "2")
	})
}

// A version that was refused is tried again if its block changes, and not if only the
// values change to which the block refers.
func TestRefusedUntilBlockChanges(t *testing.T) {
	for _, module := range []bool{false, true} {
		t.Run(fmt.Sprintf("module=%t", module), func(t *testing.T) {
			bubble(t, func(l *harness) {
				v := triedVersions(l)
				last := v.version("1", nil)
				last.Sends, last.Trial = batch.SignalMetrics, nil
				second := v.version("2", nil)
				second.Sends = batch.SignalMetrics
				tried := 0
				second.Trial = func(context.Context, component.Trial) *component.Rejection {
					tried++
					return &component.Rejection{Step: component.StepCanary, Err: errTrial, LastGood: &last}
				}
				v.save(second)
				const block = "test.sink \"a\" {\n  value = test.uvalue.v.value\n  labels = { x = %q }\n  forward_to = [test.upass.p.receiver]\n}\n"
				const rest = "test.uvalue \"v\" { }\ntest.upass \"p\" { }\n"
				config, id := block+rest, "test.sink.a"
				if module {
					config, id = "declare \"m\" {\n"+config+"}\nm \"i\" { }\n", "m.i/test.sink.a"
				}
				l.start(fmt.Sprintf(config, "1"))
				check := func(what string, want int) {
					t.Helper()
					synctest.Wait()
					if tried != want {
						t.Errorf("%s: the version was tried %d times, want %d", what, tried, want)
					}
					l.wantHealth(id, component.Unhealthy, "running version 1; 2 refused by canary")
				}
				check("at the start", 1)
				if err := l.changed(); err != nil {
					t.Fatal(err)
				}
				check("when nothing has changed", 1)
				if !module {
					l.fake("test.uvalue.v").o.Export(valueExports{Value: "new"})
					synctest.Wait()
					if err := l.changed(); err != nil {
						t.Fatal(err)
					}
					check("after an export", 1)
				}
				if err := l.reload(fmt.Sprintf(config, "2")); err != nil {
					t.Fatal(err)
				}
				check("after a change of its block", 2)
			})
		})
	}
}
