package database

import (
	"context"

	"github.com/weir-run/weir/engine/component"
)

// Store is a connection to a key/value store. Its methods are not called
// concurrently.
type Store interface {
	// Get returns the keys at and below the prefixes, with their values. A prefix
	// with a slash at the end is for the keys below it only; "" is for all keys. A
	// store may return more keys, which are ignored. Keys are paths whose leading
	// slash does not matter. The map belongs to the caller.
	Get(ctx context.Context, prefixes []string) (map[string]string, error)
	// Watch returns nil when a key at or below the prefixes may have changed since the
	// last Get, and otherwise waits until ctx ends. It may miss changes: Get is
	// called from time to time in any case. An error ends the connection.
	Watch(ctx context.Context, prefixes []string) error
	// Close releases all resources, and returns when it is done.
	Close() error
}

// Kind is a kind of key/value store, which is a component.
type Kind struct {
	// Name is the name of the block, such as remote.etcd.
	Name string
	// Exports is Exports{}. It is written in the package of the component because
	// manuals are generated from there.
	Exports Exports
	// NewArgs returns a new pointer to the arguments with their defaults.
	NewArgs func() any
	// Common returns the part of the arguments that all kinds have.
	Common func(args any) *Arguments
	// Files returns the absolute paths of the files in the arguments. When one of
	// them changes, the store is opened again. nil: there are none.
	Files func(args any) []string
	// Open connects to the store, or prepares a connection that the first Get opens.
	// Resources of the store must not depend on ctx, which ends when Open has
	// returned.
	Open func(ctx context.Context, args any, o Options) (Store, error)
}

// Options are what a store gets besides its arguments.
type Options struct {
	UserAgent string // for requests over HTTP
}

// Exports of all key/value stores.
type Exports struct {
	// The values by key. The name of a key is relative to prefix and begins with a
	// slash, such as "/db/host".
	Values map[string]component.OptionalSecret `alloy:"values,attr"`
}

// Registration returns the component of a kind.
func Registration(k Kind) component.Registration {
	return component.Registration{
		Name:         k.Name,
		NewArgs:      k.NewArgs,
		Exports:      k.Exports,
		External:     true,
		ExportsLater: true,
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return build(k, o, args)
		},
	}
}
