// Package filematch is local.file_match: it finds files by patterns, exports a target
// for each, and updates the targets when files are created or removed.
//
// It looks in intervals. The watcher of weir's own files is of no use here: it
// reads what it watches to see whether the content changed, and these are logs.
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
		Name:    "local.file_match",
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return &Component{opts: o, changed: make(chan struct{}, 1), args: *args.(*Arguments)}, nil
		},
	}
}

// Component is one local.file_match.
type Component struct {
	opts    component.Options
	changed chan struct{} // the arguments did

	mu      sync.Mutex
	args    Arguments
	updates int

	// Of Run alone.
	exported []map[string]string // nil before the first
	troubles string              // as last logged
	own      bool                // that files of weir are left out was logged
	matched  int                 // updates of the arguments that exported is for
	hung     bool                // as last reported
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
)

// Update takes new arguments; Run looks at once.
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

// Run looks until ctx ends.
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

// sync looks once and returns when to look again.
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

// keepHung returns targets with those exported before that are on a file system
// that does not answer: their files may still be there. The node is unhealthy
// until it answers.
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

// report logs what could not be looked at, once as long as it is the same.
func (c *Component) report(troubles []string) {
	text := strings.Join(troubles, "; ")
	if text != "" && text != c.troubles {
		c.opts.Logger.Warn("cannot look at everything, files there are not found", "err", text)
	}
	c.troubles = text
}
