// Package file is local.file: it exports the content of a file, and exports it
// again when the file changes.
//
// A file that cannot be read at first fails the build. One that cannot be read
// later makes the node unhealthy and leaves the last content exported, so that
// what depends on it keeps running.
package file

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
)

// Registration describes local.file.
func Registration() component.Registration {
	return component.Registration{
		Name:    "local.file",
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			c := &Component{opts: o, changed: make(chan struct{}, 1)}
			if err := c.Update(args); err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// Component is one local.file.
type Component struct {
	opts    component.Options
	changed chan struct{} // the arguments did

	mu   sync.Mutex
	args Arguments
	path string // absolute
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
)

// Update reads the file that args name. If it cannot, the old arguments stay
// and the old file is watched.
func (c *Component) Update(args any) error {
	a := *args.(*Arguments)
	path, err := filepath.Abs(a.Filename)
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", a.Filename, err)
	}
	content, err := files.Read(path, maxSize) // may take a while, so not under mu
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.export(content, err, a.IsSecret)
	if err != nil && (a != c.args || path != c.path) {
		return err
	}
	// Without a change of arguments this is about a change of the file, and
	// how that went is in the health, which a later poll can mend.
	c.args, c.path = a, path
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Sourced returns the file, unless it is only polled.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.args.Detector == Poll {
		return nil
	}
	return []string{c.path}
}

// Run polls until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	t := c.opts.Clock.NewTimer(c.pollFrequency())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
		case <-t.C():
			c.poll()
		}
		t.Reset(c.pollFrequency())
	}
}

func (c *Component) pollFrequency() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.args.PollFrequency
}

func (c *Component) poll() {
	c.mu.Lock()
	path := c.path
	c.mu.Unlock()
	content, err := files.Read(path, maxSize)
	c.mu.Lock()
	defer c.mu.Unlock()
	if path == c.path {
		// An error is in the health by now, and the next poll may do better.
		_ = c.export(content, err, c.args.IsSecret)
	}
}

// maxSize bounds a file, in bytes: its content is a value of the config. It is the
// limit of remote.http too.
const maxSize = 16 << 20

// export exports what was read of a file and reports how that went.
func (c *Component) export(content []byte, err error, secret bool) error {
	if err != nil {
		err = fmt.Errorf("cannot read file: %w", err) // err has the path
		c.opts.Health(component.Health{State: component.Unhealthy, Message: err.Error(), Time: c.opts.Clock.Now()})
		return err
	}
	c.opts.Export(Exports{component.OptionalSecret{IsSecret: secret, Value: string(content)}})
	c.opts.Health(component.Health{State: component.Healthy, Message: "read the file", Time: c.opts.Clock.Now()})
	return nil
}
