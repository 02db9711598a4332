//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// identity tells files of this machine apart, as long as they are there.
type identity struct{ dev, ino uint64 }

// openFile opens a file to read. It does not wait for the other end of a pipe.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// identify returns what f is, and how many names it has.
func identify(_ *os.File, fi fs.FileInfo) (id identity, names uint64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, 1
	}
	return identity{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}

// statPath returns what is at a path; links are followed.
func statPath(path string) (identity, fs.FileInfo, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return identity{}, nil, err
	}
	id, _ := identify(nil, fi)
	return id, fi, nil
}

// isMissing reports whether nothing is at the path of err.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// isStarved reports whether the process has too many files open.
func isStarved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
