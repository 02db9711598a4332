//go:build unix

package storage

import (
	"errors"
	"os"
	"syscall"
)

// lock takes f without waiting. The system releases it with the process. flock
// rather than fcntl: the latter is lost when any descriptor of the file is
// closed.
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
