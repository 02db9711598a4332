package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// startTrials bounds the trials of all components at the start: no node runs
// before they have ended.
const startTrials = 10 * time.Second

// rejected is a version that failed its trial, and what runs in its place.
type rejected struct {
	*component.Rejection
	// unfit says why the config does not fit what would run in its place; nil:
	// it does, as far as is known.
	unfit error
	// running is set while the trial has no verdict yet; Rejection is nil.
	running bool
}

// rejectedError is why a node does not run the version that its catalog has, or
// runs it although it failed its trial.
type rejectedError struct {
	runs string // a clause that says what runs
	err  error
}

func (r *rejectedError) Error() string {
	first, rest, more := strings.Cut(r.err.Error(), "\n")
	first += "; " + r.runs
	if more {
		first += "\n" + rest
	}
	return first
}

func (r *rejectedError) Unwrap() error { return r.err }

// choose returns a plan without mistakes in which versions that fail their
// trial are replaced by those that run, or that passed last.
func (e *Engine) choose(ctx context.Context, p *plan, mode planMode) *plan {
	mode.rejected = e.trials(ctx, p)
	if len(mode.rejected) == 0 {
		return p
	}
	for {
		q, ds := e.makePlan(p.cfg, mode)
		q.awaits = p.awaits
		if !mode.dismiss(q, ds) {
			return q
		}
	}
}

// dismiss marks the rejected versions whose replacement does not fit the config,
// and reports whether there were any.
func (mode planMode) dismiss(p *plan, ds config.Diagnostics) bool {
	found := false
	mark := func(id string, why error) {
		if r := mode.rejected[id]; r != nil && r.unfit == nil {
			r.unfit, found = why, true
		}
	}
	for id := range mode.rejected {
		if w := p.wanted[id]; w != nil && w.failed {
			mark(id, w.found.Err())
		}
	}
	if found || !ds.HasErrors() {
		return found
	}
	for _, w := range p.list {
		if w.found.HasErrors() {
			for _, id := range append([]string{w.id}, w.deps...) {
				mark(id, w.found.Err())
			}
		}
	}
	if !found {
		for id := range mode.rejected {
			mark(id, ds.Err())
		}
	}
	return found
}

// trials runs the trials of the versions in a plan, those of several versions at
// once, and returns those that were rejected, by node, and those whose trial takes
// long: it goes on outside the worker, and the files are applied again when it has a
// verdict.
func (e *Engine) trials(ctx context.Context, p *plan) map[string]*rejected {
	versions := map[string][]*wanted{}
	for _, w := range p.list {
		if w.kind == kindComponent && w.reg.Trial != nil && w.args != nil && !w.failed && !w.m.abstract {
			key := w.reg.Name + " " + w.reg.Version
			versions[key] = append(versions[key], w)
		}
	}
	if len(versions) == 0 {
		return nil
	}
	if e.plan == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, startTrials, fmt.Errorf("the tests of all components together took longer than %s", startTrials))
		defer cancel()
		out := map[string]*rejected{}
		runTrials(ctx, versions, func(w *wanted, r *rejected) {
			if r != nil {
				out[w.id] = r
			}
		})
		return out
	}
	var mu sync.Mutex
	ended := map[string]*rejected{}
	e.callAsync(func() error {
		runTrials(ctx, versions, func(w *wanted, r *rejected) {
			mu.Lock()
			defer mu.Unlock()
			ended[w.id] = r
		})
		return nil
	}, func(error) { _ = e.applyFiles(time.Now()) }) // which reports its errors
	mu.Lock()
	defer mu.Unlock()
	out := map[string]*rejected{}
	for _, ws := range versions {
		for _, w := range ws {
			r, known := ended[w.id]
			if !known {
				r = &rejected{running: true}
			}
			if r != nil {
				out[w.id] = r
			}
		}
	}
	return out
}

// runTrials runs the trials of versions, one of them at a time by nodes, and tells
// of each verdict, which is nil if the version passed. verdict is not called
// concurrently.
func runTrials(ctx context.Context, versions map[string][]*wanted, verdict func(w *wanted, r *rejected)) {
	var mu sync.Mutex
	next := make(chan []*wanted, len(versions))
	for _, key := range slices.Sorted(maps.Keys(versions)) {
		next <- versions[key]
	}
	close(next)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(versions)) {
		wg.Go(func() {
			for ws := range next {
				for _, w := range ws {
					var out *rejected
					if r := tryVersion(ctx, w); r != nil {
						out = &rejected{Rejection: r}
					}
					mu.Lock()
					verdict(w, out)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

func tryVersion(ctx context.Context, w *wanted) (r *component.Rejection) {
	if err := guard(func() error { r = w.reg.Trial(ctx, w.args); return nil }); err != nil {
		return &component.Rejection{Err: err}
	}
	return r
}

// replace puts in the place of a rejected version what runs instead.
func (r *rejected) replace(w *wanted, running *node) {
	var gen *instance
	if running != nil {
		gen = running.current
	}
	if r.running {
		if gen != nil && r.unfit == nil {
			w.reg = gen.reg
		} else {
			w.waits = config.Pending("the tests of " + w.reg.Name)
		}
		return
	}
	err := &rejectedError{err: r.Err}
	w.err = err
	at := r.Passed.UTC().Format("2006-01-02 15:04:05 MST")
	last := r.LastGood != nil
	switch {
	case gen != nil && gen.reg.Version == w.reg.Version:
		err.runs = "this version runs although it fails its tests"
		before, ok := errors.AsType[*rejectedError](running.failed)
		switch {
		case ok && before.err.Error() == r.Err.Error():
			err.runs = before.runs
		case !last:
			err.runs += ", because no version has passed them yet"
		}
	case gen != nil && r.unfit != nil:
		err.runs = "the version that ran before keeps running with its old arguments"
		w.err, w.mistake = nil, err
	case gen != nil:
		err.runs = "the version that ran before keeps running"
		if last && gen.reg.Version == r.LastGood.Version {
			err.runs = "the version that passed its tests on " + at + " runs instead"
		}
		w.reg = gen.reg
	case last && r.unfit == nil:
		err.runs = "the version that passed its tests on " + at + " runs instead"
		w.reg = *r.LastGood
	case last:
		err.runs = fmt.Sprintf("this version runs although it fails its tests, because the one that passed them on %s does not fit the config (%s)", at, oneLine(r.unfit))
	default:
		err.runs = "this version runs although it fails its tests, because no version has passed them yet"
	}
}

// oneLine is an error without the source it is about.
func oneLine(err error) string {
	if ds, ok := errors.AsType[config.Diagnostics](err); ok && len(ds) > 0 {
		d := ds[0]
		d.Detail, d.Hint = "", ""
		return d.Error()
	}
	return err.Error()
}
