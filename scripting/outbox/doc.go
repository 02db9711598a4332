// Package outbox is the queue of a scripted sink: what was accepted is in a
// journal on disk until the sink has sent it.
//
// In data order: Accept writes a batch to the journal, in the binary form and in
// blocks that can be sent as one (pack.go), and returns; the shard that a block
// belongs to joins it with those behind it to an Offer (shard.go), as far as the
// sink's bounds allow and for no longer than MaxWait; the offer goes to the
// function that delivers, again and again with back-off until that is done with
// it (send.go); then the blocks are acknowledged.
//
// The queue is the node's: its instances, each with its own settings and its
// own function, hand it on with what is under way (queue.go). One of them sends
// at a time. The order of a series holds, since it stays in its shard, which has
// one offer under way; when series change shards, a barrier in the journal keeps
// what comes behind all that is in it.
//
// The package knows no scripts, and of batches only how to cut and to join them.
package outbox
