// Package files opens the files that weir reads: configs, imports, scripts,
// certificates, passwords, positions. These files belong to the user and may be
// anything, so every read is limited:
//
//   - Only regular files are read. A FIFO, a socket, a device or a directory is
//     refused by its type, without waiting for it.
//   - A file that is larger than the caller's limit is refused; if it grows while
//     it is read, it is not read past the limit.
//   - A call waits no longer than [Patience] for a file system that does not
//     respond. The operation continues in its own goroutine, and until it
//     returns, no other operation is started for the path: see [HungError].
//   - [ReadIn] follows links only inside a folder, even if links change.
//
// [Replace] writes a file of weir itself. The package is not for log files, which are
// read for as long as they grow. All functions are safe for concurrent use.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/weir-run/weir/engine/files/internal/seam"
)

// Size limits of files that several packages read, in bytes.
const (
	// MaxSecret is the limit for a file with a password, a token, a certificate or
	// a key.
	MaxSecret = 1 << 20
	// MaxTargets is the limit for a file with targets.
	MaxTargets = 32 << 20
	// MaxOwn is the limit for a file that weir has written itself.
	MaxOwn = 256 << 20
)

var (
	// ErrNotRegular means that a FIFO, a socket, a device or a directory is not
	// read.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge means that a file beyond its limit is not read.
	ErrTooLarge = errors.New("file too large")
	// ErrOutside means that a link that leads out of a folder is not followed.
	ErrOutside = errors.New("outside of the folder")
)

// refusal is the error for a file that is not read, for one of the reasons
// above.
type refusal struct {
	path   string
	what   string
	reason error
}

func (e *refusal) Error() string { return Name(e.path) + " " + e.what }
func (e *refusal) Unwrap() error { return e.reason }

// OutsideError is the error of a link that leads out of a folder. It wraps
// ErrOutside.
type OutsideError struct {
	Path   string
	Target string // the target of the link
	Dir    string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s leads to %s, which is outside of %s", Name(e.Path), Name(e.Target), Name(e.Dir))
}

// Unwrap returns ErrOutside.
func (e *OutsideError) Unwrap() error { return ErrOutside }

// Read returns the content of a regular file of at most limit bytes. It follows
// links.
func Read(path string, limit int64) ([]byte, error) {
	return Do(path, "reading", func() ([]byte, error) {
		f, err := anywhere.file(path, regular)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return content(f, path, limit)
	})
}

// ReadArgument is like Read, for a file named on the command line, which may
// also be a FIFO, as in the shell's <(command). A FIFO can be read once.
func ReadArgument(path string, limit int64) ([]byte, error) {
	return Do(path, "reading", func() ([]byte, error) {
		fi, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if fi.Mode()&fs.ModeNamedPipe == 0 {
			f, err := anywhere.file(path, regular)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return content(f, path, limit)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return content(f, path, limit)
	})
}

// Open opens a regular file for reading. It follows links. The caller limits
// how much it reads.
func Open(path string) (*os.File, error) {
	return doAndRelease(path, "opening", func() (*os.File, error) { return anywhere.file(path, regular) },
		func(f *os.File) { f.Close() })
}

// ReadIn is like Read, for a file below dir; rel is a slash path. dir itself
// may be a link. Links are followed if they lead to a path below dir;
// otherwise, the error is an *OutsideError. Concurrent changes of links cannot
// lead out of dir.
func ReadIn(dir, rel string, limit int64) ([]byte, error) {
	path := filepath.Join(dir, filepath.FromSlash(rel))
	return Do(path, "reading", func() ([]byte, error) {
		resolved, in, err := inside(dir, path)
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(resolved)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		f, err := opener{root.Stat, root.OpenFile}.file(in, regular)
		if err != nil {
			if r, ok := errors.AsType[*refusal](err); ok {
				r.path = path
			}
			return nil, err
		}
		defer f.Close()
		return content(f, path, limit)
	})
}

// Inside returns an *OutsideError if a path below dir leads out of it.
func Inside(dir, path string) error {
	_, err := Do(path, "following", func() (struct{}, error) {
		_, _, err := inside(dir, path)
		return struct{}{}, err
	})
	return err
}

// inside returns the resolved dir and the resolved path relative to it.
func inside(dir, path string) (resolved, in string, err error) {
	if resolved, err = filepath.EvalSymlinks(dir); err != nil {
		return "", "", err
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", "", err
	}
	if in, err = filepath.Rel(resolved, to); err != nil || !filepath.IsLocal(in) {
		refused.outside.Add(1)
		return "", "", &OutsideError{path, to, dir}
	}
	return resolved, in, nil
}

// opener opens files by their paths, or below a root.
type opener struct {
	stat func(string) (fs.FileInfo, error)
	open func(string, int, fs.FileMode) (*os.File, error)
}

var anywhere = opener{os.Stat, os.OpenFile}

// file opens a file that passes check. It checks before it opens, because
// opening has effects: for a FIFO, it unblocks a writer. And it checks the
// opened file again, without waiting, because it may be a different file.
func (o opener) file(path string, check func(string, fs.FileInfo) error) (*os.File, error) {
	fi, err := o.stat(path)
	if err != nil {
		if e, ok := err.(*fs.PathError); ok {
			e.Op = "open" // the requested operation
		}
		return nil, err
	}
	if err := check(path, fi); err != nil {
		return nil, err
	}
	seam.Wait(&seam.Between, path)
	f, err := o.open(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if fi, err = f.Stat(); err == nil {
		err = check(path, fi)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func regular(path string, fi fs.FileInfo) error {
	if fi.Mode().IsRegular() {
		return nil
	}
	refused.notRegular.Add(1)
	return &refusal{path, "is " + Kind(fi.Mode()) + ", not a regular file", ErrNotRegular}
}

func directory(path string, fi fs.FileInfo) error {
	if fi.IsDir() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
}

// Kind returns the type of a file that is not regular: "a FIFO".
func Kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a link"
	}
	return "a special file"
}

func content(f *os.File, path string, limit int64) ([]byte, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() > limit {
		return nil, tooLarge(path, limit)
	}
	// fi.Size() is not enough: files of /proc have none, and files may grow.
	b := make([]byte, 0, fi.Size()+512)
	r := io.LimitReader(f, limit+1)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF && int64(len(b)) > limit:
			return nil, tooLarge(path, limit)
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

func tooLarge(path string, limit int64) error {
	refused.tooLarge.Add(1)
	return &refusal{path, "is larger than " + size(limit), ErrTooLarge}
}

func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Stat is like os.Stat, but does not wait forever.
func Stat(path string) (fs.FileInfo, error) {
	return Do(path, "looking at", func() (fs.FileInfo, error) { return os.Stat(path) })
}

// IsDir reports whether path is a directory, or a link to one.
func IsDir(path string) bool {
	fi, err := Stat(path)
	return err == nil && fi.IsDir()
}

// Real is like filepath.EvalSymlinks, but does not wait forever.
func Real(path string) (string, error) {
	return Do(path, "following", func() (string, error) { return filepath.EvalSymlinks(path) })
}

// List returns the entries of a directory, sorted by name. If there are more
// than limit, the error wraps ErrTooLarge.
func List(dir string, limit int) ([]fs.DirEntry, error) {
	return Do(dir, "listing", func() ([]fs.DirEntry, error) {
		f, err := anywhere.file(dir, directory)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		entries, err := f.ReadDir(limit + 1)
		if len(entries) > limit {
			refused.tooLarge.Add(1)
			return nil, &refusal{dir, fmt.Sprintf("has more than %d entries", limit), ErrTooLarge}
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return entries, nil
	})
}

// Name returns a path for a message: quoted if it contains characters that
// could mislead the reader.
func Name(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) {
		return strconv.Quote(path)
	}
	return path
}
