package file

import (
	"sync/atomic"

	"github.com/weir-run/weir/engine/stall"
)

// fileCalls marks the parts of a turn that call the file system, which may not
// respond. The scheduler and the watchdog of the node read it.
type fileCalls struct {
	watch *stall.Watch
	name  string // the operation, as the watchdog reports it
	op    stall.Op
	open  atomic.Bool
}

func (c *fileCalls) begin() {
	c.open.Store(true)
	c.watch.Start(&c.op, c.name, 0)
}

func (c *fileCalls) end() {
	c.op.End()
	c.open.Store(false)
}

// areOpen reports whether the turn is calling the file system. It may be called
// while the turn runs.
func (c *fileCalls) areOpen() bool { return c.open.Load() }
