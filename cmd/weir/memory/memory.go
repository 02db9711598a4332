// Package memory keeps the memory of weir's process small: it sets how much
// garbage may wait to be collected by what collecting costs, and gives back the
// pages of the program that only its start needed.
//
// It is for a process that runs for long. What others hold is their own matter.
package memory

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// period is the time between two looks, and minute how many of them are one.
const (
	period = 10 * time.Second
	minute = 6
	// first is the time in which a start makes garbage that is no hurry.
	first = 500 * time.Millisecond
)

// Start is to be called before anything is made: what a start allocates lives
// on for the most part, and its peak stays in the process's high-water mark.
func Start() {
	if !userDecides() {
		debug.SetGCPercent(startPercent)
	}
	_ = ReleaseProgram() // Keep says so when it does not work
}

// Keep looks after the process's memory until ctx ends.
func Keep(ctx context.Context, c clock.Clock, log *slog.Logger) {
	k := keeper{clock: c, log: log, paced: !userDecides(), read: readHeap, set: setPercent, release: ReleaseProgram}
	if k.paced {
		k.collected = collections(ctx)
	}
	k.run(ctx)
}

// userDecides reports whether the environment says how much garbage there may
// be. GOMEMLIMIT needs nothing: the runtime collects earlier by itself.
func userDecides() bool { return os.Getenv("GOGC") != "" }

// keeper is what Keep does, and to what.
type keeper struct {
	clock     clock.Clock
	log       *slog.Logger
	paced     bool
	collected <-chan struct{} // garbage was collected
	read      func() reading
	set       func(percent int)
	release   func() error
}

func (k *keeper) run(ctx context.Context) {
	now := k.clock.Now()
	p := pacer{last: k.read(), at: now, percent: startPercent, from: now.Add(first)}
	// First much is done that is not done again.
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

// sleep waits, and lets more garbage wait as soon as collecting it costs too
// much; false: ctx has ended.
func (k *keeper) sleep(ctx context.Context, d time.Duration, p *pacer) bool {
	t := k.clock.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C():
			return true
		case <-k.collected: // and not every now and then, which wakes up an idle process
			if k.paced && p.adjustAfterCollection(k.read(), k.clock.Now()) {
				k.set(p.percent)
			}
		}
	}
}
