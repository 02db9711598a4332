// Package scripttest runs the tests of scripts: the files beside them
// (x_test.lua) and the examples in their headers. It is behind `weir test`,
// behind the tests that a saved script must pass before it takes over, and
// behind `go test ./scripts`.
//
// A component under test is the one that a node would run: found in the
// catalog, its arguments decoded by engine/config, built by its Registration,
// behind a gate, with the limits of its block. What differs is around it: a
// clock that stands still, a source that is the test, and a sink that keeps
// what comes.
//
// The package knows no language. What a test may call is declared here, in
// tables (api.go, assert.go), which a scripting.Tester binds. Each test file
// has a VM of its own, and one that a limit stopped is replaced.
package scripttest
