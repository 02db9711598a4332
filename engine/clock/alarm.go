package clock

import (
	"sync"
	"time"
)

// Alarm calls a function at a time. With the system clock, it needs no
// goroutine until then.
type Alarm struct {
	real *time.Timer

	timer Timer // of another clock; run waits for it
	over  chan struct{}
	run   sync.WaitGroup
}

// AfterFunc calls ring in a separate goroutine after d. Stop must be called.
func AfterFunc(c Clock, d time.Duration, ring func()) *Alarm {
	if _, ok := c.(System); ok {
		return &Alarm{real: time.AfterFunc(d, ring)}
	}
	a := &Alarm{timer: c.NewTimer(d), over: make(chan struct{})}
	a.run.Go(func() {
		for {
			select {
			case <-a.timer.C():
				ring()
			case <-a.over:
				return
			}
		}
	})
	return a
}

// Reset makes it ring after d, even if it has already rung.
func (a *Alarm) Reset(d time.Duration) {
	if a.real != nil {
		a.real.Reset(d)
		return
	}
	a.timer.Reset(d)
}

// Stop ends the alarm; ring may still be running. It must be the last call, and
// must not be called by ring.
func (a *Alarm) Stop() {
	if a.real != nil {
		a.real.Stop()
		return
	}
	close(a.over)
	a.run.Wait()
	a.timer.Stop()
}
