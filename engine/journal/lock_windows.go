package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncDir does nothing: NTFS journals names, and a directory cannot be opened
// for syncing.
func syncDir(string) error { return nil }

// lockFile opens a file that cannot be opened again until it is closed. The
// error is ErrLocked if it is already open.
func lockFile(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	const sharingViolation = syscall.Errno(32)
	if errors.Is(err, sharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
