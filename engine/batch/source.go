package batch

import "sync/atomic"

var lastSource atomic.Uint64

// pushed marks the Sources of NewPushSource.
const pushed = 1 << 63

// NewSource returns a Source that no other caller in this process got.
// Consecutive ones differ in their low bits, so they spread over shards.
func NewSource() uint64 { return lastSource.Add(1) }

// NewPushSource is NewSource for who gets samples sent: a batch holds some of
// the Source's series now and others later, so that nothing follows from one
// that is not in a batch. Outputs makes no staleness markers for them; who sent
// the samples does.
func NewPushSource() uint64 { return NewSource() | pushed }

// PushSourceOf returns the Source of what is made of a Source's batches in the
// other signal: a NewPushSource of its own, always the same.
func PushSourceOf(source uint64) uint64 { return source | pushed }
