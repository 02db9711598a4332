//go:build !linux

package memory

// ReleaseProgram does nothing here: elsewhere than on Linux a process cannot
// tell the system which pages of its program it needs no longer.
func ReleaseProgram() error { return nil }
