package js

import (
	"errors"
	"time"
)

// openClock makes Date tell the time that ctx.now() does, and Math.random say
// that there is none: the same input gives the same output.
func (v *vm) openClock() {
	v.rt.SetTimeSource(v.now)
	v.rt.SetRandSource(func() float64 {
		v.raise(errors.New(noRandomness))
		return 0
	})
}

// now is the time of the call. Date asks it where it is given no time.
func (v *vm) now() time.Time {
	switch {
	case v.seen != nil:
		v.raise(refusedInSeries("the clock"))
	case v.call == nil || v.call.Now.IsZero():
		v.raise(errors.New("there is no clock here: Date tells the time in hooks, a test's is now() of its component"))
	}
	return v.call.Now
}
