package state

import (
	"fmt"
	"time"
)

// Kind is a kind of collection.
type Kind string

// The kinds of collections.
const (
	Counter Kind = "counter" // numbers by key
	Map     Kind = "map"     // values by key
	Set     Kind = "set"     // keys
	LRU     Kind = "lru"     // values in order of arrival
	Queue   Kind = "queue"   // values in the order they came
)

// Kinds are the kinds in the order of the manual.
var Kinds = []Kind{Counter, Map, Set, LRU, Queue}

// Defaults and limits of a declaration.
const (
	DefaultMax      = 10_000
	DefaultMaxBytes = 64 << 20
	DefaultMaxValue = 64 << 10
	MostEntries     = 10_000_000
	MostValue       = 32 << 20 // of a key with its value, in bytes: must fit a record of a file
)

// Decl is the declaration of a collection. Equal declarations have the same
// meaning.
type Decl struct {
	Name       string        `json:"name"`
	Kind       Kind          `json:"kind"`
	Max        int           `json:"max"`           // entries
	MaxBytes   int64         `json:"max_bytes"`     // of all entries, as counted by EntrySize
	MaxValue   int64         `json:"max_value"`     // bytes of a key and its value
	TTL        time.Duration `json:"ttl,omitempty"` // since the last write of an entry; 0 means forever
	Evict      bool          `json:"evict,omitempty"`
	Persistent bool          `json:"persistent,omitempty"`
}

// keepsOf reports whether the entries of a collection declared as old can be
// kept unchanged in a collection declared as d.
func (d Decl) keepsOf(old Decl) bool {
	if d.Kind == old.Kind {
		return true
	}
	byKey := func(k Kind) bool { return k == Map || k == LRU }
	return byKey(d.Kind) && (byKey(old.Kind) || old.Kind == Counter)
}

// FullError means that an entry was refused, because the collection has no room
// and does not evict.
type FullError struct{ msg string }

func (e *FullError) Error() string { return e.msg }

func newFullErrors(d Decl) (entries, bytes *FullError) {
	const do = "; make it larger, or let go of old entries with ttl or on_full = \"evict\""
	entries = &FullError{fmt.Sprintf("cannot add to state %s: it has all of its %d entries (max)%s", d.Name, d.Max, do)}
	bytes = &FullError{fmt.Sprintf("cannot add to state %s: it has all of its %d bytes (max_bytes)%s", d.Name, d.MaxBytes, do)}
	return entries, bytes
}

// SizeError means that a value was refused because it is too large.
type SizeError struct {
	Name      string
	Size, Max int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("cannot add %d bytes to state %s: a key and its value may have %d (max_value)", e.Size, e.Name, e.Max)
}
