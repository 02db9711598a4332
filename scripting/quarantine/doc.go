// Package quarantine keeps what a script failed on: batches as they came, each
// with the error, in a file of its own, until it is replayed or dropped, or
// falls off a bound, which is counted.
//
// In data order: Put writes an entry to a temporary file and renames it into place
// (store.go, file.go), so that a killed process leaves whole entries only; List
// and Read look into a directory without changing it, whoever has it open. A
// file that is damaged or of another version is set aside and named.
//
// Like a journal it does not wait for the disk: a killed process loses nothing,
// a crashed machine what the kernel had not written. The package knows nothing
// of scripts or signals: what is stored is text.
package quarantine
