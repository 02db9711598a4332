package batch

import "hash/maphash"

// seed is chosen at random per process. It never changes.
var seed = maphash.MakeSeed()

// Hash returns the hash of labels in the encoding of AppendWire and
// AppendLabels; Series.Hash is this hash. Its seed is random per process and
// secret, because labels are untrusted input: it must not be possible to choose
// labels that share a slot of a table or a shard. Do not store or send it; it
// differs after a restart and in other processes.
func Hash(wire []byte) uint64 { return maphash.Bytes(seed, wire) }
