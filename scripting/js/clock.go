package js

import (
	"errors"
	"time"
)

// openClock makes Date return the time of ctx.now(), and Math.random throw an
// error, so that the same input gives the same output.
func (v *vm) openClock() {
	v.rt.SetTimeSource(v.now)
	v.rt.SetRandSource(func() float64 {
		v.raise(errors.New(noRandomness))
		return 0
	})
}

// now returns the time of the call. Date uses it if no time is passed.
func (v *vm) now() time.Time {
	switch {
	case v.seen != nil:
		v.raise(refusedInSeries("the clock"))
	case v.call == nil || v.call.Now.IsZero():
		v.raise(errors.New("there is no clock here: Date tells the time in hooks, a test's is now() of its component"))
	}
	return v.call.Now
}
