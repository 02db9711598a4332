package js

import (
	"sync"
	"time"
)

const (
	// tickEvery is how often the watchdog looks at the scripts that run.
	tickEvery = 2 * time.Millisecond
	// maxGap is the most that counts between two looks: a busy machine, on which
	// the watchdog comes late, is not the script's fault.
	maxGap = 2 * tickEvery
	// idleTicks is after how many ticks with nothing to look at it ends.
	idleTicks = 10
)

// watchdog looks at all scripts that run in the process, by one goroutine: a
// timer for each call would cost more than many calls take. The goroutine ends
// when nothing has run for a while, and nobody waits for it: it has nothing to
// finish.
type watchdog struct {
	mu      sync.Mutex
	running []*budget
	awake   bool
}

var watching watchdog

// add begins to look at b. After remove has returned nothing trips b any more,
// so that no late interrupt meets the next call.
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

// runUnwatched runs fn while the watchdog does not look.
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
