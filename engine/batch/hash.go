package batch

import "hash/maphash"

// seed is the process's own. It is never written again.
var seed = maphash.MakeSeed()

// Hash returns the hash of labels as AppendWire and AppendLabels append them:
// that of Series.Hash. Its seed is the process's own and secret, since labels come
// from anybody: nobody can choose labels that share a slot of a table or a shard. So
// it must not be stored or sent: after a restart, and elsewhere, it is another one.
func Hash(wire []byte) uint64 { return maphash.Bytes(seed, wire) }
