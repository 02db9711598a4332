// Package outbox keeps what a sink has accepted in a journal on disk until it is
// sent. It knows nothing of scripts, and nothing of what a native component writes
// into a block.
//
// A Remote is the outbox of one HTTP endpoint of a native component, such as
// prometheus.remote_write: Gatherer joins batches into groups, which are written to
// the journal in the bytes that will be sent; Remote.Serve runs one sender for each
// shard; Remote.Post makes a request. Endpoints are all of a component's.
//
// A Queue is the outbox of a scripted sink. Accept writes a batch to the journal, in
// the binary form and in blocks that can be sent as one (queue_pack.go), and returns;
// the shard that a block belongs to joins it with those behind it to an Offer
// (queue_shard.go), as far as the sink's bounds allow and for no longer than MaxWait;
// the offer goes to the function that delivers, again and again with back-off until
// that is done with it (queue_send.go); then the blocks are acknowledged.
//
// See RATIONALE.md for why there are two.
package outbox
