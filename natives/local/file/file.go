// Package file is local.file: it exports the content of a file, and exports it
// again when the file changes.
//
// If the file cannot be read at first, the build of the node fails. If it cannot
// be read later, the node becomes unhealthy and the last content stays exported,
// so that dependent nodes continue to run.
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
		Name:     "local.file",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  Exports{},
		External: true,
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			c := &Component{opts: o, changed: make(chan struct{}, 1)}
			if err := c.Update(args); err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// Component is the component of a local.file node.
type Component struct {
	opts    component.Options
	changed chan struct{} // has a value if the arguments changed

	mu   sync.Mutex
	args Arguments
	path string // absolute
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
)

// Update reads the file in the arguments. If this fails, the old arguments stay
// and the old file is watched.
func (c *Component) Update(args any) error {
	a := *args.(*Arguments)
	path, err := filepath.Abs(a.Filename)
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", a.Filename, err)
	}
	content, err := files.Read(path, maxSize) // may take some time, so do not hold mu
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.export(content, err, a.IsSecret)
	if err != nil && (a != c.args || path != c.path) {
		return err
	}
	// If the arguments are unchanged, the file has changed. Errors are then
	// reported in the health, and a later poll may succeed.
	c.args, c.path = a, path
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Sourced returns the path of the file, unless it is only polled.
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
		// The error is in the health, and the next poll may succeed.
		_ = c.export(content, err, c.args.IsSecret)
	}
}

// maxSize is the maximum size of a file in bytes, because its content becomes a
// value in the config. remote.http has the same limit.
const maxSize = 16 << 20

// export exports the content of the file and reports the health.
func (c *Component) export(content []byte, err error, secret bool) error {
	if err != nil {
		err = fmt.Errorf("cannot read file: %w", err) // err contains the path
		c.opts.Health(component.Health{State: component.Unhealthy, Message: err.Error(), Time: c.opts.Clock.Now()})
		return err
	}
	c.opts.Export(Exports{component.OptionalSecret{IsSecret: secret, Value: string(content)}})
	c.opts.Health(component.Health{State: component.Healthy, Message: "read the file", Time: c.opts.Clock.Now()})
	return nil
}
