//go:build unix && !linux

package control

import "syscall"

// narrowUmask makes the system create files and sockets with mode 0600 until
// restore is called. It applies to the whole process: files that other code
// creates meanwhile have narrower permissions, never wider ones.
func narrowUmask() (restore func()) {
	old := syscall.Umask(0o177)
	return func() { syscall.Umask(old) }
}
