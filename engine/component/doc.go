// Package component is the contract between the engine and the components of a
// graph. A Registration defines a block name and is found in a Catalog. A
// Component is what runs.
//
// The engine cannot tell a native component from a scripted component: both
// have a Registration. A component implements optional interfaces for
// additional abilities. The engine asserts them once per build.
//
// The rules for component authors: NewArgs returns a pointer to a struct with
// `alloy:"…"` tags and with its defaults set. Build does nothing that Run must
// undo. Run opens ports, files and journals, waits for its own goroutines, and
// returns when its context ends. A component that returns an error or panics is
// restarted with back-off.
package component
