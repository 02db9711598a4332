// Package journal is the durable queue between a sink's ConsumeMetrics and its
// sender. An appended block is on disk, in the bytes that will be sent, until
// the sender acknowledges it or until it exceeds the size or age limit, which
// is counted.
//
// In the order of the data: Append writes blocks to the active segment, and
// concurrent callers share one write (append.go). A segment is a file of
// records with checksums; its reader finds the next valid record after damage
// (segment.go). Each block belongs to a shard. Next returns one block per shard
// at a time, read from disk, in order, and After the blocks that follow it
// (shard.go). Ack moves the shard's cursor, which is saved every second
// (cursor.go). Segments without pending blocks are removed. Memory use does not
// grow with the backlog.
//
// After a restart, the blocks since the last saved cursor are returned again,
// byte for byte the same. Blocks of the new process wait until those of earlier
// processes are done: a source has a new number in each process, so the order
// across processes does not follow from the shard. Barrier does the same within
// a process. Each barrier starts a new segment and is stored in its header, so
// that it remains effective however often the process dies before the blocks
// are done.
//
// A journal is identified by its destination (endpoint name or URL), not by the
// node that owns it (claim.go). The package knows nothing about payloads or
// networks.
package journal
