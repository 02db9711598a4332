package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-run/weir/scripting"
)

// Poll polls a source with Outside.Manual, which does not poll by itself, and
// returns when the emitted records were sent.
func (c *Component) Poll(ctx context.Context) error {
	i := slices.IndexFunc(c.timers.beats, func(b beat) bool { return b.poll })
	if i < 0 {
		return fmt.Errorf("cannot poll %s: it has no hook poll", c.script.Name)
	}
	b := c.timers.beats[i]
	t := c.mem.timer(b.key, c.opts.Clock.Now())
	select {
	case t.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.busy }()
	c.timers.tick(ctx, ctx, b, t)
	return nil
}

// File returns the file of the script.
func (c *Component) File() scripting.File { return c.script.File }

// Definition returns the script's definition, for tests.
func (c *Component) Definition() *scripting.Definition { return c.script.Definition }

// Version returns the version of the script.
func (c *Component) Version() string { return c.script.Version }
