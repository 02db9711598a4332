package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
)

var errEnded = errors.New("the discovery ended by itself")

// run is the state of Run: the current discoverer and pending work.
type run struct {
	*Component
	d        *discoverer
	ended    chan error
	export   clock.Timer // fires when the next export is due; stopped if none is pending
	waiting  bool        // an export is pending
	exported time.Time   // zero before the first export

	// Only for streams.
	failures      prometheus.Counter // may be nil
	counted       float64
	began, latest time.Time // the times of the start of the discoverer and of the last update
	complete      bool      // the discoverer has sent all targets

	over    error     // the limit that the discovered targets exceed
	refused time.Time // when the first update of the discoverer was refused because of a limit; otherwise zero
}

// Run discovers until ctx ends. If the discovery ends or panics, it returns an
// error, and the component is built again.
func (c *Component) Run(ctx context.Context) error {
	r := &run{Component: c, ended: make(chan error, 1), export: c.opts.Clock.NewTimer(pause)}
	r.export.Stop()
	defer r.export.Stop()
	var tick <-chan time.Time
	var ticker clock.Timer
	if c.kind.Stream {
		ticker = c.opts.Clock.NewTimer(look)
		defer ticker.Stop()
		tick = ticker.C()
		if c.kind.Failures != "" {
			if r.failures = c.metrics.counter(c.kind.Failures); r.failures == nil {
				return fmt.Errorf("BUG: there is no counter %s", c.kind.Failures)
			}
			r.counted = value(r.failures)
		}
	}
	var wg sync.WaitGroup
	defer r.stopDiscoverers(&wg)
	for {
		var up <-chan []*targetgroup.Group
		if r.d != nil {
			up = r.d.up
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.ended:
			return err
		case <-c.changed:
			r.begin(ctx, &wg)
		case groups := <-up:
			r.receive(groups)
		case <-r.export.C():
			r.waiting = false
			r.send()
		case <-tick:
			r.checkStream()
			ticker.Reset(look)
		}
	}
}

// begin replaces the running discoverer by the next one.
func (r *run) begin(ctx context.Context, wg *sync.WaitGroup) {
	r.mu.Lock()
	next := r.next
	r.next = nil
	r.mu.Unlock()
	if next == nil {
		return
	}
	if r.d != nil {
		r.d.stop()
	}
	r.d = next
	r.set.Begin()
	r.began, r.latest, r.complete, r.refused = r.opts.Clock.Now(), time.Time{}, false, time.Time{}
	next.start(ctx, wg, r.ended)
}

// stopDiscoverers stops the discoverer and waits for all previous ones, except
// for one that sleeps. Such a discoverer holds no resources and ends when it
// wakes up.
func (r *run) stopDiscoverers(wg *sync.WaitGroup) {
	if r.d == nil {
		return
	}
	r.d.stop()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	t := r.opts.Clock.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C():
	}
}

// receive processes an update.
func (r *run) receive(groups []*targetgroup.Group) {
	r.latest = r.opts.Clock.Now()
	if r.exceeds(groups) {
		r.reportHealth(r.failed.current())
		return
	}
	changed := false
	sources := make(map[string]bool, len(groups))
	for _, g := range groups {
		if g == nil {
			continue
		}
		changed = r.set.Merge(g) || changed
		sources[g.Source] = true
	}
	var failed string
	if !r.kind.Stream {
		// If an update is incomplete, the missing part is unknown.
		if failed = r.failed.takeErrors(); failed == "" {
			changed = r.set.Retain(func(source string) bool { return sources[source] }) || changed
		}
	} else {
		failed = r.failed.current()
	}
	r.exportIfDue(changed || r.exported.IsZero())
	r.reportHealth(failed)
}

// exceeds reports whether an update is refused because of a limit.
func (r *run) exceeds(groups []*targetgroup.Group) bool {
	// Targets that are missing in an update because of an error stay.
	err := r.set.check(groups, r.kind.Stream || r.failed.current() != "")
	if err == nil {
		if !r.kind.Stream {
			r.over = nil
		}
		return false
	}
	r.metrics.refused.Inc()
	if r.over == nil {
		r.opts.Logger.Error("cannot use the targets that were found, the last ones stay", "err", err)
	}
	r.over = err
	if r.refused.IsZero() {
		r.refused = r.opts.Clock.Now()
	}
	return true
}

// reportHealth reports the health. failed is the current failure, or "".
func (r *run) reportHealth(failed string) {
	r.mu.Lock()
	r.info = Info{Targets: r.set.targets, Groups: len(r.set.groups), LastUpdate: r.latest}
	r.mu.Unlock()
	if failed == "" && r.over != nil {
		failed = r.over.Error()
	}
	if failed != "" {
		r.reportUnhealthy(failed)
		return
	}
	r.report(component.Healthy, fmt.Sprintf("found %s", count(r.set.targets, "target")))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// exportIfDue exports now if the last export was long enough ago; otherwise, it
// schedules an export.
func (r *run) exportIfDue(changed bool) {
	if !changed || r.waiting {
		return
	}
	wait := pause - r.opts.Clock.Now().Sub(r.exported)
	if r.exported.IsZero() || wait <= 0 {
		r.send()
		return
	}
	r.waiting = true
	r.export.Reset(wait)
}

func (r *run) send() {
	r.exported = r.opts.Clock.Now()
	r.metrics.targets.Set(float64(r.set.targets))
	r.metrics.updates.Inc()
	r.opts.Export(Exports{Targets: r.set.Targets()})
}

// checkStream checks a stream: whether it failed without an error message, is
// healthy again, or has sent all targets, so that the targets of the previous
// discoverer can be removed.
func (r *run) checkStream() {
	now := r.opts.Clock.Now()
	if r.failures != nil {
		if n := value(r.failures); n > r.counted {
			r.fail(fmt.Sprintf("%s failed, the log says why", count(int(n-r.counted), "request")), false)
			r.counted = n
		}
	}
	sick := r.failed.current() != ""
	if sick && r.failed.forget(now.Add(-r.kind.Forget)) {
		sick = false
		r.reportHealth("")
	}
	if !r.refused.IsZero() {
		if now.Sub(r.refused) >= again {
			r.restartDiscovery()
		}
		return
	}
	if sick || r.complete {
		return
	}
	told := !r.latest.IsZero() && now.Sub(r.latest) >= quiet
	if r.complete = told || now.Sub(r.began) >= settled; r.complete {
		r.over = nil
		r.exportIfDue(r.set.Prune() || r.exported.IsZero())
		r.reportHealth("")
	}
}

// restartDiscovery starts the discovery again, because a stream does not repeat
// an update that was refused.
func (r *run) restartDiscovery() {
	r.refused = time.Time{}
	r.mu.Lock()
	args := r.args
	r.mu.Unlock()
	if err := r.Update(args); err != nil {
		r.fail(err.Error(), false)
	}
}
