// Package node runs a script as a node of the graph. A Component is one
// instance: a version of the script with one set of arguments. Data that
// outlives an instance, such as counters, state and the last sent series, is in
// the memory of the node, which the next instance takes over.
//
// The path of a batch:
//
//	ConsumeMetrics, ConsumeLogs (component.go) pass it to the kind of the component,
//	  transform (transform.go), sink (sink.go) or source (source.go)
//	transform.accept passes it to the pipeline of its signal (pipeline.go)
//	admission (admit.go)  waits until setup has succeeded, or passes the batch to the
//	  instance that has taken over
//	canary (canary_share.go)  divides the batch while a new version gets a share
//	split (split.go)      splits it into parts in the modes parallel and partition
//	run (run.go)          uses a VM of a pool (pool.go) for a call, in which the hooks
//	  edit a window, a view.Metrics or view.Logs
//	apply (apply.go)      creates batches from the edits, one for each set of outputs
//	router (route.go)     sends them; the flow.Sender of each receiver tracks which
//	  series have become stale
//
// ConsumeMetrics returns nil when all receivers have accepted. If the script
// fails on a batch, the batch passes the stages again in halves (retry.go,
// search.go), or is held (hold.go), or goes to the quarantine (quarantine.go,
// replay.go).
//
// A sink writes the batch to its journal and returns. Its shards later run the
// hook send with it (sink_send.go, sink_division.go). A source gets no batches:
// an emission (emission.go) takes the records that poll, run (source_run.go),
// timers (timers.go) and requests (serve.go, listen.go) have emitted to the
// router.
package node
