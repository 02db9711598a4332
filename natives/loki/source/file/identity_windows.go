package file

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// identity tells files of this machine apart, as long as they are there.
type identity struct{ dev, ino uint64 }

// openFile opens a file to read such that others may rename and delete it.
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

// identify returns what f is, and how many names it has.
func identify(f *os.File, _ fs.FileInfo) (id identity, names uint64) {
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info) != nil {
		return identity{}, 1
	}
	return identity{uint64(info.VolumeSerialNumber), uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)}, uint64(info.NumberOfLinks)
}

// statPath returns what is at a path; links are followed.
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

// isMissing reports whether nothing is at the path of err.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, windows.ERROR_DELETE_PENDING)
}

// isStarved reports whether the process has too many files open.
func isStarved(err error) bool { return errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES) }

// creationTime returns when f was made, the zero time when that is not known.
func creationTime(f *os.File) time.Time {
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info) != nil {
		return time.Time{}
	}
	return time.Unix(0, info.CreationTime.Nanoseconds())
}
