// Package journalfile reads the journal files of systemd, without libsystemd and
// without cgo, while journald writes, rotates and deletes them.
//
// A Reader merges all files of its directories. Files of one journald share a
// sequence (Cursor.SeqnumID) in which entries are numbered, so one Cursor for
// each sequence is an exact position, whatever the clocks of the machines do.
// Files are read with pread, never mapped: a file that is truncated or damaged
// while it is read is an error and not a SIGBUS.
//
// All features that systemd has given the format so far are supported: XZ, LZ4
// and Zstandard compression, keyed hashes (hash tables are not used) and compact
// files. Seals are not verified.
//
// Format: https://systemd.io/JOURNAL_FILE_FORMAT/
package journalfile
