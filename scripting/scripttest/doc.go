// Package scripttest runs the tests of scripts: the test files next to them
// (x_test.lua) and the examples in their headers. `weir test`, the tests before
// a new version of a script becomes active, and `go test ./scripts` use it.
//
// A component under test is the same as in a node: it is found in the catalog,
// its arguments are decoded by engine/config, it is built by its Registration,
// is behind a gate, and has the limits of its block. Only its environment
// differs: a clock that stands still, the test as the source, and a sink that
// keeps the data.
//
// The package is independent of any language. The functions for tests are
// declared here, in tables (api.go, assert.go), which a scripting.Tester binds.
// Each test file has its own VM. A VM that a limit stopped is replaced.
package scripttest
