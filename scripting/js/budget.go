package js

import "time"

// budget bounds one call into a VM.
type budget struct {
	setting string // what a message says of where the limit was set
	tripped error
}

// start begins a call.
func (b *budget) start(limit time.Duration, records int) { b.tripped = nil }

// end ends what start or a hook began.
func (b *budget) end() {}

// used is the time of the call.
func (b *budget) used() time.Duration { return 0 }

// memory sets what the VM may hold.
func (b *budget) memory(limit int64, setting string) {}

// pause stops the time of the call, which waits for the outside until resume.
func (b *budget) pause() error { return b.tripped }

func (b *budget) resume() {}

// charge takes n instructions for work that a host function does.
func (b *budget) charge(n int64) error { return b.tripped }

// chargeString takes n bytes for a string that is about to be made.
func (b *budget) chargeString(n int64) error { return b.tripped }

// native says that a function of the host is at work on so many bytes.
func (b *budget) native(bytes int) {}

// trip ends the call for good.
func (b *budget) trip(err error) error {
	if b.tripped == nil {
		b.tripped = err
	}
	return b.tripped
}
