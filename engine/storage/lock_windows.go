package storage

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock locks f without waiting. The system releases the lock when the process
// ends.
func lock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return errHeld
	}
	return os.NewSyscallError("LockFileEx", err)
}
