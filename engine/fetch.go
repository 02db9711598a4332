package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// Delays between two fetches of content that is missing.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// fetching gets the content of a source when it is missing, and looks for other
// content now and then.
type fetching struct {
	e      *Engine
	key    string
	remote *config.Remote
	stop   context.CancelFunc
	change chan struct{} // has a value if missing has changed

	mu      sync.Mutex
	missing bool

	// These belong to the worker.
	use  *remoteSource
	last fetched
	said string // the last logged message
}

// fetched is the outcome of a fetch.
type fetched struct {
	content remote.Content
	err     error
	done    bool
}

// fetchRemotes updates the fetchers of remote sources.
func (e *Engine) fetchRemotes() {
	want := e.remotesToFollow()
	for key, f := range e.fetchers {
		if r := want[key]; r == nil || !equal(r.Access, f.remote.Access) || r.Poll != f.remote.Poll {
			f.stop()
			delete(e.fetchers, key)
			for _, id := range f.use.ids {
				e.metrics.outdated.DeleteLabelValues(id)
			}
		}
	}
	for key, r := range want {
		f := e.fetchers[key]
		if f == nil {
			ctx, cancel := context.WithCancel(e.hard)
			f = &fetching{e: e, key: key, remote: r.Remote, stop: cancel, change: make(chan struct{}, 1), missing: r.missing != nil, use: r}
			e.fetchers[key] = f
			e.wg.Go(func() { f.run(ctx) })
			continue
		}
		if f.use = r; f.setMissing(r.missing != nil) {
			select {
			case f.change <- struct{}{}:
			default:
			}
		}
	}
}

func (f *fetching) setMissing(missing bool) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = f.missing != missing
	f.missing = missing
	return changed
}

func (f *fetching) isMissing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.missing
}

// run fetches until ctx or the engine ends.
func (f *fetching) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	defer close(stopped)
	f.e.wg.Go(func() {
		select {
		case <-f.e.box.closed: // a fetch in progress need not end first
			cancel()
		case <-stopped:
		}
	})
	t := f.e.clock.NewTimer(time.Hour)
	defer t.Stop()
	retry := firstRetry
	for {
		missing := f.isMissing()
		t.Stop()
		switch {
		case missing && retry == firstRetry: // at once
		case missing:
			t.Reset(retry)
		case f.remote.Poll > 0:
			t.Reset(f.remote.Poll)
		}
		if !missing || retry != firstRetry {
			select {
			case <-ctx.Done():
				return
			case <-f.change:
				retry = firstRetry
				continue
			case <-t.C():
			}
		}
		c, err := f.e.o.Remote.Fetch(ctx, f.remote.Source, f.remote.Access)
		if ctx.Err() != nil {
			return
		}
		applied := make(chan struct{})
		if !f.e.box.post(func() {
			defer close(applied)
			f.e.fetched(f, fetched{c, err, true})
		}) {
			return
		}
		select {
		case <-applied:
		case <-ctx.Done():
			return
		}
		if retry = min(2*retry, lastRetry); !f.isMissing() {
			retry = firstRetry
		}
	}
}

// fetched applies the outcome of a fetch, on the worker.
func (e *Engine) fetched(f *fetching, got fetched) {
	if e.fetchers[f.key] != f {
		return
	}
	f.last = got
	outcome := "ok"
	lock := absolute(pkg.LockPath(*e.path.Load()))
	switch differs := got.content.Digest != f.use.digest; {
	case got.err != nil:
		outcome = "failed"
	case differs && e.o.UpdateLock:
		outcome = "changed"
		if f.last.err = lockContent(lock, f.key, got.content); f.last.err == nil {
			_ = e.filesChanged([]string{lock}, time.Time{}) // has been reported
		}
	case differs:
		outcome = "changed"
	case f.use.missing != nil:
		_ = e.filesChanged([]string{lock}, time.Time{})
	}
	e.metrics.fetches.WithLabelValues(outcome).Inc()
	f.report(outcome)
	for _, id := range f.use.ids {
		if w := e.plan.wanted[id]; w != nil {
			e.show(w)
		}
	}
	e.publish()
}

// report logs the outcome of a fetch if it differs from the previous one, and sets
// the metric.
func (f *fetching) report(outcome string) {
	state, message := f.state()
	for _, id := range f.use.ids {
		outdated := 0.0
		if outcome == "changed" && f.last.content.Digest != f.use.digest {
			outdated = 1
		}
		f.e.metrics.outdated.WithLabelValues(id).Set(outdated)
	}
	if message == f.said {
		return
	}
	f.said = message
	log := f.e.log.With("component_id", f.use.ids[0])
	switch {
	case message == "":
		log.Info("the content of the import is up to date", "digest", f.use.digest)
	case state == component.Healthy && f.last.err == nil:
		log.Warn("other content is available", "source", f.key, "expected", f.use.digest, "got", f.last.content.Digest)
	default:
		log.Error("cannot get the content of the import", "err", message)
	}
}

// state returns the health of the imports of a source, and why.
func (f *fetching) state() (component.HealthState, string) {
	state := component.Healthy
	if f.use.missing != nil {
		state = component.Unhealthy
	}
	switch {
	case !f.last.done && f.use.missing != nil:
		return component.Unknown, "fetching the content: " + f.use.missing.Error()
	case f.last.err != nil && state == component.Healthy:
		return state, "cannot look for other content: " + f.last.err.Error()
	case f.last.err != nil:
		return state, f.last.err.Error()
	case !f.last.done || f.last.content.Digest == f.use.digest: // it is used next if it was missing
		return component.Healthy, ""
	}
	return state, fmt.Sprintf("%s has changed: expected %s, got %s; to accept the new content, run 'weir pkg lock %s'",
		f.key, f.use.digest, f.last.content.Digest, nearby(*f.e.path.Load()))
}

// remoteState returns the health of a remote import, and the values that are shown of
// it.
func (e *Engine) remoteState(w *wanted) (is component.Health, args map[string]any) {
	key := w.source.im.Remote.Source.String()
	args = map[string]any{"source": key}
	if c := w.source.content; c != nil {
		args["digest"] = c.Digest
	}
	is.State = component.Healthy
	if f := e.fetchers[key]; f != nil {
		is.State, is.Message = f.state()
	} else if w.source.content == nil {
		is.State, is.Message = component.Unknown, "the content is not in the cache"
	}
	if is.State == component.Unhealthy {
		is.Reason = component.ReasonBuild
	}
	return is, args
}
