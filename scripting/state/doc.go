// Package state contains the state that scripts keep between batches: native
// collections of keys and values, limited in entries and bytes, shared by all
// VMs and instances of a node, and stored on disk if they are persistent.
//
// A Store belongs to one node. An instance plans its declarations against it
// (which collections are kept, which are new) and commits the plan when nothing
// can fail any more. Each operation on a Collection is atomic. Package
// scripting defines how scripts see state; composite values are opaque here.
//
// Time is always an argument (Unix ms), never read from a clock. Writing an
// entry restarts its ttl; reading does not. A disk error never makes an
// operation fail.
package state
