// Package state is what scripts keep between batches: native collections of
// keys and values, bounded in entries and bytes, shared by all VMs of a node
// and by its instances, and on disk for those that are persistent.
//
// A Store is one node's. An instance plans its declarations against it (what
// is kept, what is new) and commits the plan when nothing can fail any more;
// operations on a Collection are atomic one by one. Package scripting says what
// of this a script sees; values that are more than a scalar are opaque here.
//
// The rules to know: time is an argument (Unix ms), never asked for; writing
// an entry starts its ttl anew, reading does not; nothing that a disk does
// fails an operation.
package state
