// Package file is loki.source.file: it follows files and sends each line that is
// written to them as one row, and continues where it stopped after a restart. No
// line is lost when a file is rotated by rename, by copy and truncate or by
// deletion, even while weir is not running.
//
// A follower does not follow a path but the contents that appear there. A file is
// recognized by its identity (device and inode), by the hash of its first bytes
// and by the hash of the last bytes that were read. A look at the path tells
// whether the current file is still there. If it is not, it was rotated: the
// rotated file is read to its end and kept open (rotated.go), because its writer
// may write to it until it opens the new file. It is closed when it has been idle
// for file_rotation.idle_timeout and no process has it open for writing
// (writers_linux.go), at the latest after file_rotation.max_wait. That also
// applies when the target is removed because a pattern no longer matches; if the
// file still has its name, the target was removed by a change of the config, and
// the file is only read to its end. Files that came and went between two looks,
// and files that a restart finds gone, are searched for in the directory, by
// identity and then by content. The search also finds the copy that a truncation
// leaves and the compressed file that replaced a rotated one. Bytes that were not
// read and cannot be found are counted.
//
// A range of a file with its lines is one batch. The place and the first timestamp
// of a range are written to the positions log before it is sent; its end is
// recorded when its batch.Ack reports that it is done. After a crash the ranges
// that are not done are read again, with the same boundaries and the same
// timestamps, one nanosecond per line: a receiver that gets both can tell that
// they are equal. The log is not synced to the disk, so it is correct after the
// process dies. If the machine dies, it may lose data that a journal has accepted.
// Then a checkpoint (checkpoint.go) that is at least a minute old applies, and
// lines since then are sent again. This works on Linux only, where weir can tell
// that the machine was restarted.
//
// One scheduler creates a follower for each target (reconcile.go), lends followers
// to a few workers (scheduler.go) and reports their state (report.go). A worker
// has a follower for one turn (turn.go), which is a look at its path (follower.go)
// and at most one batch (logfile.go, ship.go). So a follower needs no lock, its
// batches leave in order, a file with much to read takes its turns among the other
// files, and a thousand idle files cost a thousand calls of stat per interval and
// no memory for buffers.
package file
