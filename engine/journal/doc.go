// Package journal is the durable queue between a sink's ConsumeMetrics and its
// sender: what was appended is on disk, in the bytes that will be sent, until
// the sender acknowledges it or it falls off the size or age bound, which is
// counted.
//
// In data order: Append writes blocks to the active segment, many callers in
// one write (append.go); a segment is a file of records with checksums, whose
// reader finds the next valid record after damage (segment.go); each block
// belongs to a shard, and Next hands out one block per shard at a time, read back
// from disk, in order, After those behind it (shard.go); Ack moves the shard's cursor, which is saved
// every second (cursor.go); segments without pending blocks are removed.
// Memory does not grow with the backlog.
//
// After a restart the blocks since the last saved cursor are handed out again,
// byte for byte the same. Blocks of the new run wait until those of earlier
// runs are done: a source has another number then, so its shard says nothing
// about order across runs. Barrier does the same within a run. A segment begins
// at each barrier and says so, so that it holds however often the process dies
// before the blocks are done.
//
// Journals are found by what they send to (endpoint name or URL), never by the
// node that owns them (claim.go). The package knows nothing of payloads or
// networks.
package journal
