// Package storage locks the data directory, so that only one process uses it.
// It does not manage the content of the directory.
package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/weir-run/weir/engine/files"
)

const (
	lockFile = "weir.lock"
	infoFile = "weir.pid"
)

// Owner is the process that holds a lock.
type Owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// LockedError is the error of Acquire if another process uses the directory.
type LockedError struct {
	Dir   string
	Owner Owner // zero if the owner could not be read
}

func (e *LockedError) Error() string {
	who := "another process"
	if o := e.Owner; o.PID != 0 {
		who = fmt.Sprintf("process %d on %s since %s", o.PID, o.Host, o.Since.Format(time.RFC3339))
	}
	return fmt.Sprintf("cannot use the storage directory %s: %s has it; stop that one, or choose another with --storage.path", e.Dir, who)
}

// errHeld is the error of lock if another process holds it.
var errHeld = errors.New("held by another process")

// Lock is a locked data directory.
type Lock struct {
	dir string
	f   *os.File
}

// errEmpty is the error for an empty path, such as an unset variable in a
// service file, which filepath.Abs would convert to the working directory.
var errEmpty = errors.New("cannot use the storage directory: --storage.path is empty")

// Check returns why dir cannot be the storage directory of a weir that runs or
// has run, so that commands that only read do not mistake another directory for
// an empty one.
func Check(dir string) error {
	if dir == "" {
		return errEmpty
	}
	fi, err := os.Stat(dir)
	why := "no weir has run with it"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "it does not exist"
	case err != nil:
		return fmt.Errorf("cannot use the storage directory: %w", err)
	case !fi.IsDir():
		why = "it is a file"
	default:
		_, err := os.Stat(filepath.Join(dir, lockFile))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot use the storage directory: %w", err)
		}
	}
	return fmt.Errorf("cannot use the storage directory %s: %s; name the storage directory of a weir with --storage.path", dir, why)
}

// CheckPrivate returns an error if users other than the owner of dir can create
// or replace files in it: sockets, journals, state. It checks only Unix
// permissions.
func CheckPrivate(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot check the storage directory: %w", err)
	}
	if mode := fi.Mode().Perm(); runtime.GOOS != "windows" && mode&0o022 != 0 {
		return fmt.Errorf("other users can change files in %s, which has mode %#o: run chmod go-w on it", dir, mode)
	}
	return nil
}

// Acquire creates dir, with mode 0700, if it does not exist, and locks it for
// this process until Release or until the process ends in any way. If another
// process has locked it, the error is a *LockedError. now is stored for that
// error in other processes.
func Acquire(dir string, now time.Time) (*Lock, error) {
	if dir == "" {
		return nil, errEmpty
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use the storage directory: %w", err)
	}
	if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
		return nil, fmt.Errorf("cannot use the storage directory %s: it is a file; name a directory with --storage.path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the storage directory: %w; choose another with --storage.path", err)
	}
	// The lock file is never removed: two processes could then lock two files
	// of the same name.
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use the storage directory: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		if errors.Is(err, errHeld) {
			return nil, &LockedError{Dir: dir, Owner: readOwner(dir)}
		}
		return nil, fmt.Errorf("cannot lock the storage directory %s: %w", dir, err)
	}
	l := &Lock{dir: dir, f: f}
	if err := l.writeOwner(now); err != nil {
		// Without the file, a refused process reports less; a full disk must not
		// prevent the start.
		_ = os.Remove(filepath.Join(dir, infoFile))
	}
	return l, nil
}

// Dir returns the directory, absolute.
func (l *Lock) Dir() string { return l.dir }

// Release unlocks the directory.
func (l *Lock) Release() error {
	// The owner is removed while the lock is held, so that it is never that of the
	// next process.
	errInfo := os.Remove(filepath.Join(l.dir, infoFile))
	if errors.Is(errInfo, fs.ErrNotExist) {
		errInfo = nil
	}
	if err := errors.Join(errInfo, l.f.Close()); err != nil {
		return fmt.Errorf("cannot release the storage directory: %w", err)
	}
	return nil
}

// writeOwner writes the owner of the lock to a separate file, because a locked
// file cannot be read on Windows.
func (l *Lock) writeOwner(now time.Time) error {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	b, err := json.Marshal(Owner{PID: os.Getpid(), Host: host, Since: now.UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(l.dir, infoFile), append(b, '\n'), false)
}

func readOwner(dir string) (o Owner) {
	b, err := files.Read(filepath.Join(dir, infoFile), 1<<20)
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{}
	}
	return o
}
