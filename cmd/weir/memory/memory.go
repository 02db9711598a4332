// Package memory keeps the memory of weir's process small: it chooses how much
// garbage may accumulate depending on the cost of collections, and it releases
// the pages of the program that only the start needed.
//
// It is for a long-running process. It does not change the memory that other
// packages retain.
package memory

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// period is the time between two readings, and minute is the number of readings
// per minute.
const (
	period = 10 * time.Second
	minute = 6
	// first is the time after the start in which garbage is not urgent.
	first = 500 * time.Millisecond
)

// Start must be called before anything else is allocated: most allocations of the
// start are permanent, and their peak stays in the high-water mark of the
// process.
func Start() {
	if !userDecides() {
		debug.SetGCPercent(startPercent)
	}
	_ = ReleaseProgram() // if this fails, Keep logs it
}

// Keep manages the memory of the process until ctx ends.
func Keep(ctx context.Context, c clock.Clock, log *slog.Logger) {
	k := keeper{clock: c, log: log, paced: !userDecides(), read: readHeap, set: setPercent, release: ReleaseProgram}
	if k.paced {
		k.collected = collections(ctx)
	}
	k.run(ctx)
}

// userDecides reports whether the environment sets the amount of garbage.
// GOMEMLIMIT needs no special case: the runtime then collects earlier by itself.
func userDecides() bool { return os.Getenv("GOGC") != "" }

// keeper is the state of Keep.
type keeper struct {
	clock     clock.Clock
	log       *slog.Logger
	paced     bool
	collected <-chan struct{} // has a value after a garbage collection
	read      func() reading
	set       func(percent int)
	release   func() error
}

func (k *keeper) run(ctx context.Context) {
	now := k.clock.Now()
	p := pacer{last: k.read(), at: now, percent: startPercent, from: now.Add(first)}
	// At first, much work is done that is not repeated.
	for wait := time.Second; wait < period; wait *= 2 {
		if !k.sleep(ctx, wait, &p) {
			return
		}
		if err := k.release(); err != nil {
			k.log.Debug("pages of the program stay in memory until the system takes them", "err", err)
			k.release = func() error { return nil }
		}
	}
	for n := 1; k.sleep(ctx, period, &p); n++ {
		if k.paced && p.adjust(k.read(), k.clock.Now()) {
			k.set(p.percent)
		}
		if n%minute == 0 {
			_ = k.release()
		}
	}
}

// sleep waits, and allows more garbage as soon as collecting it costs too much.
// It returns false if ctx has ended.
func (k *keeper) sleep(ctx context.Context, d time.Duration, p *pacer) bool {
	t := k.clock.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C():
			return true
		case <-k.collected: // not periodically, which would wake up an idle process
			if k.paced && p.adjustAfterCollection(k.read(), k.clock.Now()) {
				k.set(p.percent)
			}
		}
	}
}
