// Package component is the contract between the engine and everything that can
// stand in a graph: what a block name means (Registration, found in a Catalog),
// and what runs (Component).
//
// The engine cannot tell a native component from a scripted one; both are a
// Registration. A component finds its abilities in optional interfaces, which
// the engine asserts once per build.
//
// The rules a component author must know: NewArgs returns a pointer to a
// struct with `alloy:"…"` tags and its defaults filled in; Build does nothing
// that Run must undo; Run opens ports, files and journals, waits for its own
// goroutines, and returns when its context ends. A component that returns an
// error or panics is restarted with back-off.
package component
