//go:build unix

package storage

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f without waiting. The system releases the lock when the process
// ends. It uses flock rather than fcntl, whose lock is lost when any descriptor
// of the file is closed.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errHeld
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}
