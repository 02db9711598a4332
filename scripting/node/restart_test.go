package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// restarts tries versions of a.b for nodes, before and after restarts.
type restarts struct{ *trials }

func newRestarts(t *testing.T) *restarts {
	f := &restarts{newTrials(t)}
	f.options.LastGood = true
	f.restart()
	return f
}

// version saves a version, which marks its output and has further attributes.
func (f *restarts) version(mark, more string) component.Registration {
	f.t.Helper()
	f.save("a/b.lua", `local weir = require "weir"
return weir.transform { `+more+` series = function(s) s.labels.v = "`+mark+`" end }`)
	r := registrytest.Lookup(f.t, f.cat, "a.b")
	if r.Err != nil {
		f.t.Fatal(r.Err)
	}
	return r
}

// try returns the outcome of the trial of a version for a node. running is the component
// that it would replace. A version that passes becomes active.
func (f *restarts) try(r component.Registration, node, attrs string, running component.Component) *component.Rejection {
	f.t.Helper()
	args := r.NewArgs()
	if err := registrytest.Decode(args, attrs, f.sink); err != nil {
		f.t.Fatal(err)
	}
	rejection := r.Trial(f.t.Context(), component.Trial{Node: node, Args: args, Running: running, Begin: func(string) {}})
	if rejection == nil {
		r.Activated(node, time.Now())
	}
	return rejection
}

// passes checks that a version may run on a node on which nothing runs.
func (f *restarts) passes(r component.Registration, node, attrs string) {
	f.t.Helper()
	if got := f.try(r, node, attrs, nil); got != nil {
		f.t.Errorf("%s: got %+v, want the version on disk to run", node, got)
	}
}

// refused checks that a version may not run on a node on which nothing runs, and what
// runs instead.
func (f *restarts) refused(r component.Registration, node, attrs, step, err string, instead component.Registration) {
	f.t.Helper()
	got := f.try(r, node, attrs, nil)
	switch {
	case got == nil:
		f.t.Errorf("%s: the version on disk runs, want a refusal by %s", node, step)
	case got.Step != step || got.Err == nil || !strings.HasPrefix(got.Err.Error(), err):
		f.t.Errorf("%s: got a refusal by %s: %v, want one by %s: %s", node, got.Step, got.Err, step, err)
	case got.LastGood == nil || got.LastGood.Version != instead.Version:
		f.t.Errorf("%s: %+v runs instead, want version %s", node, got.LastGood, instead.Version)
	}
}

// postponed checks that a version needs a running component before its trial, and which
// one.
func (f *restarts) postponed(r component.Registration, node, attrs string, first component.Registration) {
	f.t.Helper()
	if got := f.try(r, node, attrs, nil); got == nil || got.Err != nil || got.LastGood == nil || got.LastGood.Version != first.Version {
		f.t.Errorf("%s: got %+v, want that version %s runs first", node, got, first.Version)
	}
}

const (
	shadowBlock = "script {\n on_reload = \"shadow\"\n shadow {\n max_changed_records = 0.1\n }\n}"
	canaryBlock = "script {\n canary {\n share = 0.5\n }\n}"
)

// A version that a step refused for a node does not run there after a restart, until the
// limits of the step change or the block has the step no more.
func TestRefusedAfterRestart(t *testing.T) {
	f := func(step, block, more, err string) {
		t.Run(step, func(t *testing.T) {
			f := newRestarts(t)
			first := f.version("1", "")
			f.passes(first, "a.b.one", "")
			f.passes(first, "a.b.two", "")
			f.swap(first, block)
			f.send(text(t, 1, "a 1\n"))
			second := f.version("2", more)
			for _, node := range []string{"a.b.one", "a.b.three"} {
				if got := f.try(second, node, block, f.c); got == nil || got.Step != step || !strings.HasPrefix(got.Err.Error(), err) {
					t.Fatalf("%s: got %+v, want a refusal by %s", node, got, step)
				}
			}
			f.passes(second, "a.b.two", "")
			f.restart()
			second = f.version("2", more)
			for range 2 {
				f.refused(second, "a.b.one", block, step, err, first)
			}
			f.passes(second, "a.b.two", block) // it accepted this version
			f.passes(second, "a.b.new", block)
			f.swap(*f.try(second, "a.b.one", block, nil).LastGood, "")
			same(t, f.send(text(t, 2, "a 1\n")), "a{v=\"1\"} 1\n")

			f.options.LastGood = false
			f.restart()
			f.passes(f.version("2", more), "a.b.one", block)
			f.options.LastGood = true
			f.restart()
			second = f.version("2", more)
			f.passes(second, "a.b.one", block) // it has become active since
			f.refused(second, "a.b.three", block, step, err, first)
			f.passes(second, "a.b.three", "") // the block does not have the step
			f.passes(f.version("1", ""), "a.b.one", "")
		})
	}
	f(component.StepShadow, shadowBlock, "", "scripts/a/b.lua: the new version changes 1 of 1 recent records")
	f(component.StepCanary, canaryBlock, "state = { x = weir.state.counter{} },", "cannot begin a canary: ")
}

// Other limits end a refusal. The step shadow has nothing to compare after a restart; a
// canary begins again.
func TestRefusedUntilLimitsChange(t *testing.T) {
	f := newRestarts(t)
	first := f.version("1", "")
	f.passes(first, "a.b.one", "")
	f.swap(first, shadowBlock)
	f.send(text(t, 1, "a 1\n"))
	second := f.version("2", "")
	for _, node := range []string{"a.b.one", "a.b.two"} {
		if got := f.try(second, node, shadowBlock, f.c); got == nil {
			t.Fatal("there was no refusal")
		}
	}
	const why = "scripts/a/b.lua: the new version changes 1 of 1 recent records"
	f.refused(second, "a.b.one", shadowBlock, component.StepShadow, why, first)
	f.postponed(second, "a.b.one", canaryBlock, first)

	// The same limits refuse it again if the running version has no recent input.
	empty := newRestarts(t)
	empty.swap(empty.version("1", ""), shadowBlock)
	if got := f.try(second, "a.b.one", shadowBlock, empty.c); got == nil || got.Err.Error() == "" || !strings.HasPrefix(got.Err.Error(), why) {
		t.Errorf("got %+v, want the earlier refusal", got)
	}
	f.options.LastGood = false
	f.restart()
	if got := f.try(f.version("2", ""), "a.b.two", shadowBlock, empty.c); got != nil {
		t.Errorf("got %+v with --config.last-good=false, want no refusal", got)
	}
	f.options.LastGood = true
	f.restart()
	f.passes(f.version("2", ""), "a.b.one", "script {\n on_reload = \"shadow\"\n shadow {\n max_changed_records = 1\n }\n}")
}

// At the start, the version that was active last runs until the canary of the version on
// disk has begun.
func TestCanaryAfterRestart(t *testing.T) {
	f := newRestarts(t)
	first := f.version("1", "")
	f.passes(first, "a.b.one", canaryBlock) // the node is new
	f.passes(first, "a.b.one", canaryBlock)
	f.restart()
	second := f.version("2", "")
	f.postponed(second, "a.b.one", canaryBlock, first)
	f.passes(second, "a.b.new", canaryBlock)
	if got := f.options.Versions.Get("a.b", f.f.Dir).Refused; len(got) > 0 {
		t.Errorf("the history has the refusals %+v, want none", got)
	}
	if !strings.Contains(f.log.String(), "the version on disk gets a canary\" component_id=a.b.one") {
		t.Errorf("logged %s", &f.log)
	}

	// Nothing runs instead if the earlier version cannot be read.
	sources, err := filepath.Glob(filepath.Join(f.storage, "*", "sources", "*"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("got sources %q, %v", sources, err)
	}
	for _, path := range sources {
		if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.restart()
	f.passes(f.version("2", ""), "a.b.one", canaryBlock)
	f.options.LastGood = false
	f.restart()
	f.passes(f.version("3", ""), "a.b.one", canaryBlock)
}

// A version that its tests refuse is replaced by the version that was active on the node,
// even if another node has accepted a newer one.
func TestTestsRefuseAfterRestart(t *testing.T) {
	f := newRestarts(t)
	f.save("a/b_test.lua", "-- 1")
	first := f.version("1", "")
	f.passes(first, "a.b.one", "")
	f.passes(first, "a.b.two", "")
	second := f.version("2", "")
	f.passes(second, "a.b.two", "")
	f.verdict = errTrial
	third := f.version("3", "")
	for range 2 {
		f.refused(third, "a.b.one", "", component.StepTest, errTrial.Error(), first)
		f.refused(third, "a.b.two", "", component.StepTest, errTrial.Error(), second)
		f.refused(third, "a.b.new", "", component.StepTest, errTrial.Error(), second)
		f.restart()
		third = f.version("3", "")
	}

	// The test was repaired while weir was down.
	f.verdict = nil
	f.save("a/b_test.lua", "-- 2")
	f.restart()
	f.passes(f.version("3", ""), "a.b.one", "")
}

// Without a history that can be written, the version on disk runs.
func TestRestartWithoutHistory(t *testing.T) {
	f := newRestarts(t)
	f.storage = filepath.Join(f.storage, "file")
	if err := os.WriteFile(f.storage, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.passes(f.version("1", ""), "a.b.one", canaryBlock)
	f.postponed(f.version("2", ""), "a.b.one", canaryBlock, f.version("1", ""))
	f.restart()
	f.passes(f.version("2", ""), "a.b.one", canaryBlock)
}
