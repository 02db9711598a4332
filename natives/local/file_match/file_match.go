// Package filematch is local.file_match: it finds files by patterns, exports a
// target for each, and updates the targets when files are created or removed.
//
// It searches at intervals. The watcher of weir's own files cannot be used,
// because it reads the watched files to detect changes of their content, and
// these files are logs.
package filematch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/glob"
)

// Registration describes local.file_match.
func Registration() component.Registration {
	return component.Registration{
		Name:     "local.file_match",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  Exports{},
		External: true,
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return &Component{opts: o, changed: make(chan struct{}, 1), args: *args.(*Arguments)}, nil
		},
	}
}

// Component is the component of a local.file_match node.
type Component struct {
	opts    component.Options
	changed chan struct{} // has a value if the arguments changed

	mu      sync.Mutex
	args    Arguments
	updates int

	// Only used by Run.
	exported []map[string]string // nil before the first
	troubles string              // the last logged problems
	own      bool                // it was logged that files of weir are skipped
	matched  int                 // the number of updates of the arguments for which exported is valid
	hung     bool                // the last reported state
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
)

// Update applies new arguments. Run searches immediately.
func (c *Component) Update(args any) error {
	c.mu.Lock()
	c.args = *args.(*Arguments)
	c.updates++
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Run searches until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	t := c.opts.Clock.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
		case <-t.C():
		}
		t.Reset(c.sync())
	}
}

// sync searches once and returns the delay until the next search.
func (c *Component) sync() time.Duration {
	c.mu.Lock()
	args, updates := c.args, c.updates
	c.mu.Unlock()
	targets := make([]map[string]string, 0, len(c.exported))
	look := glob.NewLook(c.opts.StoragePath)
	var oldest time.Time
	if args.IgnoreOlderThan > 0 {
		oldest = c.opts.Clock.Now().Add(-args.IgnoreOlderThan)
	}
	for _, t := range args.PathTargets {
		for _, path := range look.Find(t[pathLabel], t[excludeLabel], oldest) {
			found := maps.Clone(t)
			found[pathLabel] = path
			targets = append(targets, found)
		}
	}
	targets = c.keepHung(look, targets, updates)
	c.report(look.Troubles())
	if own := look.Own(); own != "" && !c.own {
		c.own = true
		c.opts.Logger.Info("a pattern matches files in weir's storage directory; they are left out", "file", own)
	}
	if c.exported == nil || !slices.EqualFunc(c.exported, targets, maps.Equal[map[string]string]) {
		c.exported = targets
		c.opts.Export(Exports{Targets: targets})
	}
	return args.SyncPeriod
}

// keepHung returns targets together with the previously exported ones on a file
// system that does not respond, because their files may still exist. The node is
// unhealthy until the file system responds.
func (c *Component) keepHung(look *glob.Look, targets []map[string]string, updates int) []map[string]string {
	err := look.AnyHung()
	if err != nil && c.matched == updates {
		found := make(map[string]bool, len(targets))
		for _, t := range targets {
			found[t[pathLabel]] = true
		}
		for _, t := range c.exported {
			if !found[t[pathLabel]] && look.Hung(t[pathLabel]) {
				targets = append(targets, t)
			}
		}
	}
	c.matched = updates
	if hung := err != nil; hung != c.hung {
		c.hung = hung
		h := component.Health{State: component.Healthy, Time: c.opts.Clock.Now()}
		if hung {
			h.State, h.Message, h.Reason = component.Unhealthy, err.Error(), component.ReasonStalled
		}
		c.opts.Health(h)
	}
	return targets
}

// report logs the places that could not be searched, once until they change.
func (c *Component) report(troubles []string) {
	text := strings.Join(troubles, "; ")
	if text != "" && text != c.troubles {
		c.opts.Logger.Warn("cannot look at everything, files there are not found", "err", text)
	}
	c.troubles = text
}
