//go:build !linux

package memory

// ReleaseProgram does nothing: only on Linux can a process release the pages of
// its program that it does not need any more.
func ReleaseProgram() error { return nil }
