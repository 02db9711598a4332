package js

import (
	"sync"
	"time"
)

const (
	// tickEvery is the interval at which the watchdog checks running scripts.
	tickEvery = 2 * time.Millisecond
	// maxGap is the maximum time counted between two ticks, because scripts must
	// not be blamed if the watchdog is late on a busy machine.
	maxGap = 2 * tickEvery
	// idleTicks is the number of ticks without running scripts after which it
	// ends.
	idleTicks = 10
)

// watchdog checks all scripts that run in the process, in one goroutine: a
// timer for each call would cost more than many calls take. The goroutine ends
// when nothing has run for a while. Nothing waits for it, because it has
// nothing to finish.
type watchdog struct {
	mu      sync.Mutex
	running []*budget
	awake   bool
}

var watching watchdog

// add starts checking b. After remove has returned, b is no longer interrupted,
// so that a late interrupt does not affect the next call.
func (w *watchdog) add(b *budget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.index = len(w.running)
	w.running = append(w.running, b)
	if !w.awake {
		w.awake = true
		go w.watch()
	}
}

func (w *watchdog) remove(b *budget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.running) - 1
	w.running[last].index = b.index
	w.running[b.index] = w.running[last]
	w.running[last] = nil
	w.running = w.running[:last]
	b.index = -1
}

// runUnwatched runs fn while the watchdog is stopped.
func (w *watchdog) runUnwatched(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

func (w *watchdog) watch() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var m memoryNow
	for idle := 0; ; {
		<-tick.C
		now := time.Now()
		w.mu.Lock()
		if len(w.running) > 0 {
			idle = 0
			m.read()
			for _, b := range w.running {
				b.tick(now, &m)
			}
		} else if idle++; idle > idleTicks {
			w.awake = false
			w.mu.Unlock()
			stopPatternClock()
			return
		}
		w.mu.Unlock()
	}
}
