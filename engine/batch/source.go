package batch

import "sync/atomic"

var lastSource atomic.Uint64

// pushed is set in the Sources that NewPushSource returns.
const pushed = 1 << 63

// NewSource returns a Source that is unique in this process. Consecutive
// Sources differ in their low bits, so they spread over shards.
func NewSource() uint64 { return lastSource.Add(1) }

// NewPushSource is like NewSource, for components that receive pushed samples.
// Their batches contain varying subsets of the Source's series, so a series
// that is missing from a batch has not ended. Outputs sends no staleness
// markers for them; the sender of the samples does.
func NewPushSource() uint64 { return NewSource() | pushed }

// PushSourceOf returns the Source for batches of the other signal that are
// derived from the batches of source. It is like a NewPushSource, and always
// the same for the same source.
func PushSourceOf(source uint64) uint64 { return source | pushed }
