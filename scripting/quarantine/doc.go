// Package quarantine stores data on which a script failed: unchanged batches,
// each with the error, in a separate file, until it is replayed or dropped, or
// exceeds a limit, which is counted.
//
// Put writes an entry to a temporary file and renames it (store.go, file.go),
// so that a killed process leaves only complete entries. List and Read read a
// directory without changing it, even while it is in use. A file that is
// damaged or of another version is set aside and reported.
//
// Like a journal, it does not wait for the disk: a killed process loses
// nothing, and a crashed machine loses what the kernel had not written. The
// package knows nothing about scripts or signals: the stored data is text.
package quarantine
