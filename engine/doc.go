// Package engine takes a config and runs it: config in, running graph out.
//
// In the order of data. load reads the config (engine/config). makePlan writes
// it out to one flat graph (expand.go): instances of declares, items of a
// foreach and what is imported become nodes with IDs below that of their block,
// arguments and exports become values between them. It looks every block up in
// the catalogs, resolves its references, orders the graph and decodes all
// arguments, with what nodes export now or, of those that do not run yet, with
// the zero value; every mistake is known by then and refuses the change as a
// whole (mistakes.go says where each belongs). commit walks the graph in order
// and asks each node to reconcile with what is wanted of it: nothing, an Update,
// or a new instance that is built, started and swapped in behind the node's
// gate while the old one finishes its calls. Nodes that are no longer wanted are
// stopped, sources first. When what is exported decides what there is, the
// collection of a foreach or the content of an import, the same config is
// planned and committed again. Start is the same with nothing running, so there
// is no second path.
//
// One goroutine, the worker (apply.go), changes the graph: reloads, changed
// files, exports, restarts and retries come to it as events. It calls
// components, and holds no lock meanwhile. The status of a node is in an
// immutable snapshot behind an atomic pointer (status.go), so reading it never
// waits for a component.
//
// The rules to know. A mistake in the config refuses the change and nothing
// running is touched; a component that cannot be built or updated, and a
// registration that has become broken, leave their one node on its last good
// version, unhealthy and saying why; a component that fails while it runs is
// built again, with back-off. An operation that does not return makes its node
// unhealthy while it hangs (package stall). Exports that change faster than they
// can be followed are one change, the newest (pace.go). Nothing a component does
// ends the process.
//
// The engine knows no component and no signal by name, and cannot tell a
// script from a native.
package engine
