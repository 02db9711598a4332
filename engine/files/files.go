// Package files opens the files that weir reads: configs, imports, scripts,
// certificates, passwords, positions. A file comes from the user's disk and may be
// anything, so that every read is bounded:
//
//   - Only regular files are read. A FIFO, a socket, a device or a directory is
//     refused by its type, without waiting for it.
//   - A file that is larger than the caller's limit is refused; one that grows
//     while it is read is not read past the limit.
//   - A file system that does not answer is waited for no longer than [Patience].
//     The call goes on in a goroutine of its own, and until that returns nothing
//     else is started for the path: see [HungError].
//   - [ReadIn] follows links only inside of a folder, whatever changes meanwhile.
//
// It is not for files that weir writes to, nor for log files, which are read for
// as long as they grow. All functions are safe for concurrent use.
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

// The limits of files that several packages read, in bytes.
const (
	// MaxSecret is for a file with a password, a token, a certificate or a key.
	MaxSecret = 1 << 20
	// MaxTargets is for a file with targets.
	MaxTargets = 32 << 20
	// MaxOwn is for a file that weir has written itself.
	MaxOwn = 256 << 20
)

var (
	// ErrNotRegular is why a FIFO, a socket, a device or a directory is not read.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is why a file beyond its limit is not read.
	ErrTooLarge = errors.New("file too large")
	// ErrOutside is why a link that leads out of a folder is not followed.
	ErrOutside = errors.New("outside of the folder")
)

// refusal is a file that is not read, for one of the reasons above.
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
	Target string // where it leads
	Dir    string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s leads to %s, which is outside of %s", Name(e.Path), Name(e.Target), Name(e.Dir))
}

// Unwrap returns ErrOutside.
func (e *OutsideError) Unwrap() error { return ErrOutside }

// Read returns the content of a regular file of at most limit bytes. Links are
// followed.
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

// ReadArgument is Read of a file that was named on the command line, which may
// also be a FIFO: that is what <(command) of a shell is. It can be read once.
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

// Open opens a regular file to read. Links are followed. The caller limits
// how much it reads.
func Open(path string) (*os.File, error) {
	return doAndRelease(path, "opening", func() (*os.File, error) { return anywhere.file(path, regular) },
		func(f *os.File) { f.Close() })
}

// ReadIn is Read of a file below dir, rel being a slash path. dir may be a link
// itself, and links are followed as long as they lead to something below dir;
// the error of others is an *OutsideError. Nothing that
// changes between the look and the open leads out of dir.
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

// Inside returns an *OutsideError for a path below dir that leads to something
// outside of it.
func Inside(dir, path string) error {
	_, err := Do(path, "following", func() (struct{}, error) {
		_, _, err := inside(dir, path)
		return struct{}{}, err
	})
	return err
}

// inside returns what dir really is and where path lies in it, both without
// links.
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

// opener is a way to files: by their paths, or below a root.
type opener struct {
	stat func(string) (fs.FileInfo, error)
	open func(string, int, fs.FileMode) (*os.File, error)
}

var anywhere = opener{os.Stat, os.OpenFile}

// file opens what passes a check. It looks before it opens, because opening alone
// has effects: of a FIFO, it lets a writer go on. And it looks again at what it
// opened, without waiting for anything, because that may be another file.
func (o opener) file(path string, check func(string, fs.FileInfo) error) (*os.File, error) {
	fi, err := o.stat(path)
	if err != nil {
		if e, ok := err.(*fs.PathError); ok {
			e.Op = "open" // which is what was asked for
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

// Kind says what a file that is not regular is: "a FIFO".
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
	// Not fi.Size() only: files of /proc have none, and others grow.
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

// Stat is os.Stat that does not wait for ever.
func Stat(path string) (fs.FileInfo, error) {
	return Do(path, "looking at", func() (fs.FileInfo, error) { return os.Stat(path) })
}

// IsDir reports whether path is a directory, or a link to one.
func IsDir(path string) bool {
	fi, err := Stat(path)
	return err == nil && fi.IsDir()
}

// Real is filepath.EvalSymlinks that does not wait for ever.
func Real(path string) (string, error) {
	return Do(path, "following", func() (string, error) { return filepath.EvalSymlinks(path) })
}

// List returns the entries of a directory, sorted by name. More than limit are an
// error that wraps ErrTooLarge.
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

// Name is a path as it is written in a message: quoted if it has characters that
// would mislead who reads it.
func Name(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }) {
		return strconv.Quote(path)
	}
	return path
}
