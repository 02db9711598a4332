// Package outbox keeps accepted data in a journal on disk until a sink has sent
// it. It knows nothing about scripts, and nothing about the block format of
// native components.
//
// A Remote is the outbox of one HTTP endpoint of a native component, such as
// prometheus.remote_write. Gatherer joins batches into groups, which are
// written to the journal in the bytes that will be sent. Remote.Serve runs one
// sender per shard. Remote.Post sends a request. Endpoints manages all
// endpoints of a component.
//
// A Queue is the outbox of a scripted sink. Accept writes a batch to the
// journal in the binary form, in blocks that can be sent as a unit
// (queue_pack.go), and returns. The shard of a block joins it with the
// following blocks into an Offer (queue_shard.go), within the sink's limits and
// for at most MaxWait. The offer is passed to the function that delivers it,
// with retries and back-off until it is done (queue_send.go). Then the blocks
// are acknowledged.
//
// RATIONALE.md explains why there are two.
package outbox
