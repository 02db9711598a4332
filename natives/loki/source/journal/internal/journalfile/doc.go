// Package journalfile reads the journal files of systemd, without libsystemd and
// without cgo, while journald writes, rotates and deletes them.
//
// A Reader merges all files of its directories. Files of one journald share a
// sequence (Cursor.SeqnumID) in which entries are numbered, so one Cursor for
// each sequence is an exact position, regardless of the machines' clocks. Files
// are read with pread and never mapped, so that truncating or damaging a file
// while it is read causes an error and not a SIGBUS.
//
// All current features of the format are supported: XZ, LZ4 and Zstandard
// compression, keyed hashes (hash tables are not used) and compact files. Seals
// are not verified.
//
// Format: https://systemd.io/JOURNAL_FILE_FORMAT/
package journalfile
