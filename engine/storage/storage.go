// Package storage guards the data directory: one process at a time. It is not
// for what lies in the directory.
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

// LockedError is why Lock refused: another process has the directory.
type LockedError struct {
	Dir   string
	Owner Owner // zero when the owner could not be read
}

func (e *LockedError) Error() string {
	who := "another process"
	if o := e.Owner; o.PID != 0 {
		who = fmt.Sprintf("process %d on %s since %s", o.PID, o.Host, o.Since.Format(time.RFC3339))
	}
	return fmt.Sprintf("cannot use the storage directory %s: %s has it; stop that one, or choose another with --storage.path", e.Dir, who)
}

// errHeld is what lock returns when another process has the file.
var errHeld = errors.New("held by another process")

// Lock is a locked data directory.
type Lock struct {
	dir string
	f   *os.File
}

// errEmpty is for an unset variable in a service file, which filepath.Abs would
// turn into the working directory.
var errEmpty = errors.New("cannot use the storage directory: --storage.path is empty")

// Check returns why dir cannot be the storage directory of a weir that runs or
// has run: what only reads there must not take another directory for an empty
// one.
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

// CheckPrivate returns an error if users other than the owner of dir can put
// files into it or replace them: sockets, journals, states. It knows only the
// permissions that Unix has.
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

// Acquire makes dir, with mode 0700, if it is not there, and locks it for this
// process until Release or until the process ends, however that happens. When
// another process has it the error is a *LockedError. now is written down for
// others to read.
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
		// A refused process learns less then; a full disk is no reason not to start.
		_ = os.Remove(filepath.Join(dir, infoFile))
	}
	return l, nil
}

// Dir returns the directory, absolute.
func (l *Lock) Dir() string { return l.dir }

// Release lets another process use the directory.
func (l *Lock) Release() error {
	// The owner is removed while the lock is held, so that it is never that of
	// the next.
	errInfo := os.Remove(filepath.Join(l.dir, infoFile))
	if errors.Is(errInfo, fs.ErrNotExist) {
		errInfo = nil
	}
	if err := errors.Join(errInfo, l.f.Close()); err != nil {
		return fmt.Errorf("cannot release the storage directory: %w", err)
	}
	return nil
}

// writeOwner says who has the lock, in a file of its own: the locked one cannot
// be read on Windows.
func (l *Lock) writeOwner(now time.Time) error {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	b, err := json.Marshal(Owner{PID: os.Getpid(), Host: host, Since: now.UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	// By rename, so that who is refused never reads half of it.
	tmp := filepath.Join(l.dir, infoFile+".tmp")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(l.dir, infoFile))
}

func readOwner(dir string) (o Owner) {
	b, err := files.Read(filepath.Join(dir, infoFile), 1<<20)
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{}
	}
	return o
}
