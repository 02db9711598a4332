//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// identity identifies a file of this machine as long as the file exists.
type identity struct{ dev, ino uint64 }

// openFile opens a file for reading. It does not wait for the other end of a
// pipe.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// identify returns the identity of f and the number of its names.
func identify(_ *os.File, fi fs.FileInfo) (id identity, names uint64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, 1
	}
	return identity{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}

// statPath returns the identity and information of the file at a path. It follows
// symbolic links.
func statPath(path string) (identity, fs.FileInfo, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return identity{}, nil, err
	}
	id, _ := identify(nil, fi)
	return id, fi, nil
}

// isMissing reports whether err means that the file does not exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isStarved reports whether err means that the process has too many files open.
func isStarved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
