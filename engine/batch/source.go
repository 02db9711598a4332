package batch

import "sync/atomic"

var lastSource atomic.Uint64

// NewSource returns a Source that no other caller in this process got.
// Consecutive ones differ in their low bits, so they spread over lanes.
func NewSource() uint64 { return lastSource.Add(1) }
