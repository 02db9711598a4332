package file

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// identity identifies a file of this machine as long as the file exists.
type identity struct{ dev, ino uint64 }

// openFile opens a file for reading and lets other processes rename and delete
// it.
func openFile(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// identify returns the identity of f and the number of its names.
func identify(f *os.File, _ fs.FileInfo) (id identity, names uint64) {
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info) != nil {
		return identity{}, 1
	}
	return identity{uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)}, uint64(info.NumberOfLinks)
}

// statPath returns the identity and information of the file at a path. It follows
// symbolic links.
func statPath(path string) (identity, fs.FileInfo, error) {
	f, err := openFile(path)
	if err != nil {
		return identity{}, nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return identity{}, nil, err
	}
	id, _ := identify(f, fi)
	return id, fi, nil
}

// isMissing reports whether err means that the file does not exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, windows.ERROR_DELETE_PENDING)
}

// isStarved reports whether err means that the process has too many files open.
func isStarved(err error) bool { return errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES) }

// creationTime returns when f was created, or the zero time if it is not known.
func creationTime(f *os.File) time.Time {
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info) != nil {
		return time.Time{}
	}
	return time.Unix(0, info.CreationTime.Nanoseconds())
}
