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
// once, and returns those that were rejected, by node.
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
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, startTrials, fmt.Errorf("the tests of all components together took longer than %s", startTrials))
		defer cancel()
	}
	var mu sync.Mutex
	out := map[string]*rejected{}
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
					if r := tryVersion(ctx, w); r != nil {
						mu.Lock()
						out[w.id] = &rejected{Rejection: r}
						mu.Unlock()
					}
				}
			}
		})
	}
	wg.Wait()
	return out
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
