package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// wantReload compares the last record with want, but for times and the names of the
// harness's files. Steps are compared by name.
func (l *harness) wantReload(want service.Reload) {
	l.t.Helper()
	all := l.e.Reloads()
	got := all[len(all)-1]
	got.Message = durations.ReplaceAllString(strings.ReplaceAll(got.Message, l.dir+string(filepath.Separator), ""), "(… ms)")
	got.Trigger.Files = slices.Clone(got.Trigger.Files)
	for i, f := range got.Trigger.Files {
		got.Trigger.Files[i] = filepath.Base(f)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(service.Reload{}, "ID", "Time", "Seconds", "Steps"), cmpopts.EquateEmpty()); diff != "" {
		l.t.Errorf("the last record (-want +got):\n%s", diff)
	}
}

// TestRecord: each change leaves a record, which has the nodes that it touched, their
// versions and why some were refused.
func TestRecord(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1111111aaaaa", nil))
		l.start(`test.sink "a" { }`)
		l.wantReload(service.Reload{Trigger: service.Trigger{Kind: "start"}, Outcome: "applied", Message: "started c.alloy (… ms), 1 node",
			Nodes: []service.ReloadNode{{ID: "test.sink.a", Action: "added", To: "1111111aaaaa"}}, Rebuilt: 1})

		if err := l.reload("test.sink \"a\" { }\ntest.uvalue \"b\" { }"); err != nil {
			t.Fatal(err)
		}
		l.wantReload(service.Reload{Trigger: service.Trigger{Kind: "request"}, Outcome: "applied", Message: "reloaded c.alloy (… ms), 1 of 2 nodes rebuilt",
			Nodes: []service.ReloadNode{{ID: "test.uvalue.b", Action: "added"}}, Rebuilt: 1, Untouched: 1})

		v.save(v.version("2222222bbbbb", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		files := service.Trigger{Kind: "files", Files: []string{"x.lua"}}
		l.wantReload(service.Reload{Trigger: files, Outcome: "applied", Message: "reloaded test.sink (… ms), 1 of 2 nodes rebuilt, 1 untouched; test.sink.a 1111111 → 2222222; changed: scripts/x.lua",
			Nodes: []service.ReloadNode{{ID: "test.sink.a", Action: "rebuilt", From: "1111111aaaaa", To: "2222222bbbbb"}}, Rebuilt: 1, Untouched: 1})
		if last := l.e.Reloads()[2]; last.ID != 3 || last.Time.IsZero() || len(last.Steps) == 0 {
			t.Errorf("got ID %d, time %s and steps %v", last.ID, last.Time, last.Steps)
		}

		v.save(v.version("3333333ccccc", errTrial))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantReload(service.Reload{Trigger: files, Outcome: "partial", Message: "cannot reload test.sink.a: running version 2222222; 3333333 refused by test: " + errTrial.Error(),
			Nodes: []service.ReloadNode{{ID: "test.sink.a", Action: "refused", From: "2222222bbbbb", To: "3333333ccccc", Step: "test",
				Message: "running version 2222222; 3333333 refused by test: " + errTrial.Error()}}, Untouched: 1})

		if err := l.reload("test.sink \"a\" { }\ntest.nothing \"b\" { }"); err == nil {
			t.Error("the config was accepted")
		}
		l.wantReload(service.Reload{Trigger: service.Trigger{Kind: "request"}, Outcome: "refused", Untouched: 2,
			Message: "c.alloy:2:1: error: component test.nothing does not exist\n  2 | test.nothing \"b\" { }\n    | ^^^^^^^^^^^^^^^^\n  hint: `weir components` lists all there are"})

		v.save(v.version("2222222bbbbb", nil))
		if err := l.reload(""); err != nil {
			t.Fatal(err)
		}
		l.wantReload(service.Reload{Trigger: service.Trigger{Kind: "request"}, Outcome: "applied", Message: "reloaded c.alloy (… ms), 0 of 0 nodes rebuilt, 2 removed",
			Nodes: []service.ReloadNode{{ID: "test.sink.a", Action: "removed", From: "2222222bbbbb"}, {ID: "test.uvalue.b", Action: "removed"}}})
	})
}

// TestRecordOfSlowTrial: a trial that takes long is in the record of the change that
// began it, in the status of the node and in the events. The record of its outcome names
// the changes that waited for it.
func TestRecordOfSlowTrial(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1111111aaaaa", nil))
		l.start(`test.sink "a" { }`)
		second, shadowed, ended := v.version("2222222bbbbb", nil), make(chan struct{}), make(chan struct{})
		second.Trial = func(_ context.Context, c component.Trial) *component.Rejection {
			c.Begin(component.StepTest)
			<-shadowed
			c.Begin(component.StepShadow)
			<-ended
			return &component.Rejection{Step: component.StepShadow, Err: errTrial}
		}
		v.save(second)
		go l.e.FilesChanged(context.Background(), []string{"x.lua"})
		time.Sleep(time.Second)
		synctest.Wait()
		running := []service.ReloadNode{{ID: "test.sink.a", Action: "in progress", From: "1111111aaaaa", To: "2222222bbbbb", Step: "test"}}
		l.wantReload(service.Reload{Trigger: service.Trigger{Kind: "files", Files: []string{"x.lua"}}, Outcome: "in progress", Nodes: running})
		if got := l.info("test.sink.a").Trial; got == nil || got.Step != "test" || got.Version != "2222222bbbbb" {
			t.Errorf("the status has trial %+v", got)
		}

		events, more := l.e.ReloadEvents(0)
		after := events[len(events)-1].ID
		close(shadowed)
		<-more
		events, _ = l.e.ReloadEvents(after)
		if len(events) != 1 || events[0].Node != "test.sink.a" || events[0].Trial.Step != "shadow" || events[0].ID != after+1 {
			t.Errorf("got events %+v", events)
		}

		time.Sleep(time.Second)
		go l.e.Reload(context.Background())
		synctest.Wait()
		close(ended)
		synctest.Wait()
		l.wantReload(service.Reload{Follows: []uint64{2, 3}, Trigger: service.Trigger{Kind: "files", Files: []string{"x.lua"}}, Outcome: "partial",
			Message: "cannot reload test.sink.a: running version 1111111; 2222222 refused by shadow: " + errTrial.Error(),
			Nodes: []service.ReloadNode{{ID: "test.sink.a", Action: "refused", From: "1111111aaaaa", To: "2222222bbbbb", Step: "shadow",
				Message: "running version 1111111; 2222222 refused by shadow: " + errTrial.Error()}}})
		all := l.e.Reloads()
		if steps := all[len(all)-1].Steps; steps["test"] != 1 || steps["shadow"] != 1 {
			t.Errorf("the steps took %v, want 1 s of test and of shadow", steps)
		}
		if got := l.info("test.sink.a").Trial; got != nil {
			t.Errorf("the status has trial %+v after its end", got)
		}
	})
}

// TestRecordsAreBounded: the records and events that are kept, and what is in them,
// are bounded.
func TestRecordsAreBounded(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start("")
		for range 600 {
			if err := l.e.Reload(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		all := l.e.Reloads()
		if len(all) != 100 || all[99].ID != 601 {
			t.Errorf("%d records are kept, the last is %d", len(all), all[len(all)-1].ID)
		}
		if events, _ := l.e.ReloadEvents(0); len(events) != 500 || events[499].Reload.ID != 601 {
			t.Errorf("%d events are kept", len(events))
		}
		if events, _ := l.e.ReloadEvents(601); len(events) != 0 {
			t.Errorf("got %d events after the last", len(events))
		}
		var config strings.Builder
		for i := range 60 {
			fmt.Fprintf(&config, "test.value \"v%d\" {\n  value = \"cannot build\"\n}\n", i)
		}
		l.mu.Lock()
		l.onBuild = func(string, *arguments, component.Options) error {
			return fmt.Errorf("cannot: %s", strings.Repeat("x", 2000))
		}
		l.mu.Unlock()
		if err := l.reload(config.String()); err != nil {
			t.Fatal(err)
		}
		all = l.e.Reloads()
		last := all[len(all)-1]
		if len(last.Nodes) != 50 || last.Omitted != 10 || len(last.Nodes[0].Message) > 1100 || len(last.Message) > 9000 {
			t.Errorf("got %d nodes, %d omitted, messages of %d and %d bytes", len(last.Nodes), last.Omitted, len(last.Nodes[0].Message), len(last.Message))
		}
		if !slices.ContainsFunc(last.Nodes, func(n service.ReloadNode) bool { return n.Action == "failed" }) {
			t.Errorf("no node failed: %+v", last.Nodes[0])
		}
	})
}

// TestRequestReload: whoever asks gets the records of the change and of the outcome of
// its trials. A canary is waited for only if that is wanted.
func TestRequestReload(t *testing.T) {
	f := func(name string, canaries bool, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				v := triedVersions(l)
				v.save(v.version("1", nil))
				l.start(`test.sink "a" { }`)
				second, tested, ended := v.version("2", nil), make(chan struct{}), make(chan struct{})
				second.Trial = func(_ context.Context, c component.Trial) *component.Rejection {
					c.Begin(component.StepTest)
					<-tested
					c.Begin(component.StepCanary)
					<-ended
					return &component.Rejection{Step: component.StepCanary, Err: errTrial}
				}
				v.save(second)
				answer := make(chan []service.Reload, 1)
				go func() {
					records, err := l.e.RequestReload(context.Background(), canaries)
					if err != nil {
						t.Error(err)
					}
					answer <- records
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				if len(answer) > 0 {
					t.Error("the request did not wait for the test")
				}
				close(tested)
				synctest.Wait()
				if waits := len(answer) == 0; waits != canaries {
					t.Errorf("the request waits for the canary: %t", waits)
				}
				close(ended)
				var got []string
				for _, r := range <-answer {
					got = append(got, r.Outcome+" "+r.Nodes[0].Action+" "+r.Nodes[0].Step)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			})
		})
	}
	f("waits for the test", false, "applied in progress test")
	f("waits for the canary", true, "applied in progress test", "partial refused canary")
}

// TestRecordOfSteps: a record has how long it took to notice the change, and to build the
// new version, also if the worker did not wait for that.
func TestRecordOfSteps(t *testing.T) {
	bubble(t, func(l *harness) {
		l.watch, l.options.PollFiles = true, true
		v := triedVersions(l)
		v.save(v.version("1", nil))
		script := filepath.Join(l.dir, "x.lua")
		replace(t, script, []byte("1"))
		l.catalog.roots = []string{script}
		l.start(`test.sink "a" { }`)
		takes := func(d time.Duration) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.onBuild = func(string, *arguments, component.Options) error { time.Sleep(d); return nil }
		}
		save := func(version string) map[string]float64 {
			v.save(v.version(version, nil))
			replace(t, script, []byte(version))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			v.wantRuns(t, version)
			all := l.e.Reloads()
			return all[len(all)-1].Steps
		}
		takes(100 * time.Millisecond)
		want := map[string]float64{"detect": 0.02, "compile": 0, "check": 0, "build": 0.1, "swap": 0}
		if diff := cmp.Diff(want, save("22")); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		l.takeLines()
		takes(time.Second)
		want = map[string]float64{"detect": 0.02, "build": 1}
		if diff := cmp.Diff(want, save("333")); diff != "" {
			t.Errorf("steps of a slow build (-want +got):\n%s", diff)
		}
	})
}

// TestRecordOfReadFiles: nodes that read a changed file, and those that use their exports,
// leave a record and an event with the file.
func TestRecordOfReadFiles(t *testing.T) {
	bubble(t, func(l *harness) {
		l.world = &world{values: map[string]string{"u": "one"}}
		file := filepath.Join(l.dir, "secret")
		l.start(fmt.Sprintf("test.uvalue \"u\" { value = %q }\ntest.uvalue \"v\" { value = test.uvalue.u.value }\ntest.value \"w\" { }", file))
		read := func() {
			t.Helper()
			if err := l.e.FilesChanged(context.Background(), []string{file}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		updates := func(f func(id string, args *arguments) error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.onUpdate = f
		}
		trigger := service.Trigger{Kind: "files", Files: []string{"secret"}}
		l.world.mu.Lock()
		l.world.values["u"] = "two"
		l.world.mu.Unlock()
		events, _ := l.e.ReloadEvents(0)
		l.takeLines()
		read()
		const line = "updated test.uvalue.u, test.uvalue.v (… ms), 0 of 3 nodes rebuilt, 2 updated, 1 untouched; changed: secret"
		l.wantReload(service.Reload{Trigger: trigger, Outcome: "applied", Message: line,
			Nodes: []service.ReloadNode{{ID: "test.uvalue.u", Action: "updated"}, {ID: "test.uvalue.v", Action: "updated"}}, Untouched: 1})
		l.wantSaid(line)
		if more, _ := l.e.ReloadEvents(events[len(events)-1].ID); len(more) != 1 || more[0].Reload == nil {
			t.Errorf("got events %+v", more)
		}

		// A mistake is reported once.
		updates(func(string, *arguments) error { return errors.New("no key in it") })
		for range 2 {
			read()
		}
		l.wantReload(service.Reload{Trigger: trigger, Outcome: "partial", Untouched: 2,
			Message: "cannot reload test.uvalue.u: cannot read its files again: no key in it; the last good version keeps running",
			Nodes:   []service.ReloadNode{{ID: "test.uvalue.u", Action: "failed", Message: "cannot read its files again: no key in it"}}})
		if n := len(l.e.Reloads()); n != 3 {
			t.Errorf("there are %d records, want 3", n)
		}

		// A slow update ends later.
		updates(func(string, *arguments) error { time.Sleep(time.Second); return nil })
		read()
		all := l.e.Reloads()
		if got := all[3]; got.Outcome != "in progress" || len(got.Nodes) != 1 || got.Nodes[0].Action != "in progress" {
			t.Errorf("got %+v of a slow update", got)
		}
		l.wantReload(service.Reload{Follows: []uint64{4}, Trigger: trigger, Outcome: "applied", Untouched: 2,
			Message: "reloaded test.uvalue.u (… ms), 0 of 3 nodes rebuilt, 1 updated", Nodes: []service.ReloadNode{{ID: "test.uvalue.u", Action: "updated"}}})
	})
}
