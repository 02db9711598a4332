package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/versions"
)

// trial runs the tests of one version of a user's script, once.
type trial struct {
	c    *catalog
	s    *entry
	test scripting.File

	mu      sync.Mutex
	ended   bool
	outcome *component.Rejection
}

// run returns why the version must not take over; nil if it may.
func (t *trial) run(ctx context.Context) *component.Rejection {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.c.hasPassed(t.s) {
		return t.outcome
	}
	err := t.c.o.Compilers.test(ctx, func() error {
		return t.c.o.Test(ctx, Tested{Script: t.s.File, Test: t.test, Folder: t.c.folder()})
	})
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &component.Rejection{Step: component.StepTest, Err: err} // weir stops: this is no verdict
	}
	t.ended = true
	if err == nil {
		t.c.mu.Lock()
		t.c.passed[t.s.Name] = t.s.Version
		t.c.mu.Unlock()
		return nil
	}
	t.outcome = t.reject(err, ctx.Err() != nil)
	return t.outcome
}

func (c *catalog) hasPassed(s *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed[s.Name] == s.Version
}

// reject notes that the version failed. late says that the tests did not end in time: a
// version that has passed before does not fail because the machine is busy.
func (t *trial) reject(err error, late bool) *component.Rejection {
	c, s := t.c, t.s
	if c.o.Versions != nil {
		if last := c.o.Versions.Get(s.Name, c.dir).Passed(); late && last != nil && last.ID == s.Version {
			c.o.Logger.Warn("the tests of a script did not end in time; it runs, because this version has passed them before", "script", s.Name, "err", err)
			return nil
		}
		if e := c.o.Versions.Refuse(s.Name, c.dir, versions.Refusal{ID: s.Version, Step: component.StepTest, Reason: err.Error()}); e != nil {
			c.o.Logger.Warn("weir check and weir history cannot report that the tests of a script failed", "script", s.Name, "err", e)
		}
	}
	return &component.Rejection{Step: component.StepTest, Err: err}
}

// rel returns the path of a user's file below the scripts folder.
func (c *catalog) rel(f scripting.File) string {
	rel, err := filepath.Rel(c.dir, f.Path)
	if err != nil { // both are absolute
		return f.Name
	}
	return filepath.ToSlash(rel)
}

// rejected returns what a running weir found out about this version: that it
// failed its tests. nil: it did not, or nobody knows.
func (t *trial) rejected() *scripting.Error {
	c, s := t.c, t.s
	if c.o.Versions == nil {
		return nil
	}
	record := c.o.Versions.Get(s.Name, c.dir)
	r := record.Rejected(s.Version, component.StepTest)
	if r == nil {
		return nil
	}
	runs := "weir runs it all the same, because no version has passed its tests yet"
	if last := record.LastGood("", s.Version); last != nil {
		runs = "weir runs version " + component.ShortVersion(last.ID) + " instead"
	}
	return s.File.Error(0, scripting.HookLoad, fmt.Errorf("this version failed its tests on %s UTC; %s: %s", r.Time.UTC().Format(time.DateTime), runs, r.Reason))
}

// TestLoaded runs the tests of the user's scripts that were looked up in a
// catalog that NewCatalog made, whatever their blocks say. It returns the names of
// the scripts that have tests, and the errors of those that failed.
func TestLoaded(ctx context.Context, from component.Catalog) (names []string, errs []error) {
	c, ok := from.(*catalog)
	if !ok {
		return nil, nil
	}
	c.mu.Lock()
	var trials []*trial
	for _, name := range slices.Sorted(maps.Keys(c.answers)) {
		if a := c.answers[name]; a.isDone() && a.script != nil && a.script.trial != nil {
			names, trials = append(names, name), append(trials, a.script.trial)
		}
	}
	c.mu.Unlock()
	found := make([]error, len(trials))
	next := make(chan int, len(trials))
	for i := range trials {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				t := trials[i]
				found[i] = c.o.Test(ctx, Tested{Script: t.s.File, Test: t.test, Folder: c.folder()})
			}
		})
	}
	wg.Wait()
	return names, slices.DeleteFunc(found, func(err error) bool { return err == nil })
}
