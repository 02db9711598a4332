// Package database makes components of key/value stores: a component exports the
// keys below a prefix with their values, and exports them again when they change.
//
// A store is a Kind: how it is configured, and how it is opened. An open store
// gets the values of prefixes and watches them. This package does the rest: it
// retries with back-off, keeps the last good values, limits their size, and
// reports health and metrics. Text is all that crosses the interface, so that a
// Kind can also run in another process.
//
// A key is a path: /db/host. Its name in the exports is relative to the prefix in
// the config and begins with a slash, whatever the store calls it.
package database
