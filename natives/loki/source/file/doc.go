// Package file is loki.source.file: it follows files and sends what is written
// to them, a line a row, and goes on after a restart where it left off. No line
// is lost when a file is rotated, by rename, by copy and truncation or by
// deletion, also while weir is down.
//
// What is followed is not a path but content, a generation: a file that is known
// by its identity (device and inode), by the hash of its first bytes and by the
// hash of the last bytes that were read. A look at the path tells whether its
// current generation is still there. If it is not, it was rotated: it is read to
// its end and kept open (rotated.go), because its writer may write to it until
// it opens the new file. It is closed when it has been idle for
// file_rotation.idle_timeout and no process has it open for writing
// (writers_linux.go), at the latest after file_rotation.max_wait. That also
// applies when the target is removed because a pattern no longer matches; if the
// file still has its name, the target was removed by a change of the config, and
// the file is only read to its end. Generations that came and went between two looks,
// and those that a restart finds gone, are searched for in the directory, by
// identity and then by content, which also finds the copy that a truncation
// leaves and the compressed file that became of it. What was not read and is
// not found is counted.
//
// A range of a generation with its lines is one batch. Its place and its first
// timestamp are written to the positions log before it is sent, and that it is
// done when its batch.Ack says so. After a crash the ranges that are not
// done are read again, with the same boundaries and the same timestamps, a
// nanosecond a line: who receives both can tell that they are one. The log
// is not synced to the disk: what it knows is true after the death of the
// process. After that of the machine, which may take with it what a journal has
// accepted, a checkpoint (checkpoint.go) that is a minute old at least is what is
// known, and lines since then come again; on Linux only, where it is known that the
// machine began anew.
//
// There is one scheduler, which makes a follower of each target (reconcile.go),
// lends followers to a few workers (scheduler.go) and tells how they are
// (report.go). A worker has a follower for one turn (turn.go), which is a look at
// its path (follower.go) and at most one batch (generation.go, ship.go). So a
// follower needs no lock, its batches leave in order, a file with much to read
// takes its turns among the others, and a thousand idle files cost a thousand
// calls of stat an interval and no memory for buffers.
package file
