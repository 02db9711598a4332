// Package engine runs a config as a graph of components.
//
// In the order of the data: load reads the config (engine/config). makePlan
// expands it to one flat graph (expand.go): instances of declares, items of a
// foreach and imports become nodes with IDs below that of their block, and
// arguments and exports become values between them. It looks up every block in
// the catalogs, resolves its references, orders the graph and decodes all
// arguments, with the current exports of the nodes, or the zero value for nodes
// that do not run yet. All errors are known by then, and any error refuses the
// change as a whole (mistakes.go attributes them). commit walks the graph in
// order and lets each node reconcile with what is wanted: nothing, an Update,
// or a new instance that is built, started and swapped in behind the node's
// gate while the old one finishes its calls. Nodes that are no longer wanted
// are stopped, sources first. If exports change which nodes there are, as the
// collection of a foreach or the content of an import does, the same config is
// planned and committed again. The start is the same, with nothing running, so
// there is no second path.
//
// One goroutine, the worker (apply.go), changes the graph: it receives reloads,
// changed files, exports, restarts and retries as events. It calls components
// without holding a lock. The status of a node is in an immutable snapshot
// behind an atomic pointer (status.go), so reading it never waits for a
// component.
//
// An error in the config refuses the change and does not affect the running
// graph. A component that cannot be built or updated, and a registration that
// has become broken, leave their node on its last good version, unhealthy and
// with the reason. A component that fails while it runs is built again, with
// back-off. An operation that does not return makes its node unhealthy while it
// hangs (package stall). Exports that change faster than they can be processed
// are merged into one change, the newest (pace.go). No component can end the
// process.
//
// The engine knows no component or signal by name, and cannot distinguish a
// script from a native component.
package engine
