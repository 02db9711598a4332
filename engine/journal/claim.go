package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

const (
	claimGrace = time.Second
	claimPoll  = 50 * time.Millisecond
)

// Claim opens the journal of o.Owner below root, or creates it.
//
// It is the journal with the owner's key and node. If a predecessor of the node
// has it open, Claim waits. Several nodes may have endpoints with the same key,
// each with its own journal. Therefore, Claim adopts a journal of the same key
// and another node only if that node does not open it within a second: the node
// was renamed or removed. The journal must also have the same URL and tenant: a
// new item of a foreach must not send the data of a removed item.
func Claim(ctx context.Context, root string, o Options) (*Journal, error) {
	if err := os.MkdirAll(root, 0o750); err != nil {
		return nil, fmt.Errorf("cannot make the journals' directory: %w", err)
	}
	key := o.Owner.Key()
	end := o.Clock.Now().Add(claimGrace)
	for {
		graced := !o.Clock.Now().Before(end)
		j, err := tryClaim(root, key, o, graced)
		if j != nil || (err != nil && !errors.Is(err, ErrLocked)) {
			return j, err
		}
		if err := clock.Sleep(ctx, o.Clock, claimPoll); err != nil {
			return nil, fmt.Errorf("cannot get the journal of %s: %w", key, err)
		}
	}
}

// tryClaim returns nil, with or without ErrLocked, if the caller should try
// again.
func tryClaim(root, key string, o Options, graced bool) (*Journal, error) {
	dirs, err := journalDirs(root, key)
	if err != nil {
		return nil, err
	}
	var foreign []string
	for _, d := range dirs {
		m, err := parseMeta(d)
		if err == nil && m.Node == o.Owner.Node {
			return Open(d, o)
		}
		if err != nil || m.Audience == o.Owner.audience() {
			foreign = append(foreign, d)
		}
	}
	if len(foreign) > 0 && !graced {
		return nil, nil
	}
	for _, d := range foreign {
		j, err := Open(d, o)
		if errors.Is(err, ErrLocked) {
			continue
		}
		return j, err
	}
	dir := filepath.Join(root, key)
	for i := 2; slices.Contains(dirs, dir); i++ {
		dir = filepath.Join(root, key+"~"+strconv.Itoa(i))
	}
	return Open(dir, o)
}

// journalDirs returns the directories of the journals with the given key, or of
// all journals if key is empty.
func journalDirs(root, key string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list journals: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		base, _, _ := strings.Cut(e.Name(), "~")
		if e.IsDir() && (key == "" || base == key) {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	return dirs, nil
}

// Info describes a journal on disk.
type Info struct {
	Dir      string    `json:"dir"`
	Endpoint string    `json:"endpoint"`
	URL      string    `json:"url"` // without secrets
	Node     string    `json:"node"`
	InUse    bool      `json:"in_use"` // false: an orphan, unless weir is not running
	Bytes    int64     `json:"bytes"`
	Written  time.Time `json:"written"` // the last write; zero if the journal is empty
	Err      string    `json:"err,omitempty"`

	maxAge time.Duration
}

// List returns the journals below root, sorted by directory.
func List(root string) ([]Info, error) {
	dirs, err := journalDirs(root, "")
	if err != nil {
		return nil, err
	}
	var infos []Info
	for _, d := range dirs {
		lock, err := lockFile(filepath.Join(d, lockName))
		if err == nil {
			lock.Close()
		}
		in := inspect(d)
		in.InUse = errors.Is(err, ErrLocked)
		infos = append(infos, in)
	}
	return infos, nil
}

func inspect(dir string) Info {
	in := Info{Dir: dir}
	m, err := parseMeta(dir)
	if err != nil {
		in.Err = fmt.Sprintf("cannot read its meta file: %v", err)
	}
	in.Endpoint, in.URL, in.Node = m.Endpoint, m.URL, m.Node
	in.maxAge = time.Duration(m.MaxAgeMs) * time.Millisecond
	segs, _ := filepath.Glob(filepath.Join(dir, "*.seg")) // the pattern is valid
	for _, s := range segs {
		if fi, err := os.Stat(s); err == nil {
			in.Bytes += fi.Size()
			if fi.ModTime().After(in.Written) {
				in.Written = fi.ModTime()
			}
		}
	}
	return in
}

// RemoveExpired removes the journals below root that are not in use and whose
// newest block is older than their age limit. It returns the removed journals.
func RemoveExpired(root string, now time.Time) ([]Info, error) {
	dirs, err := journalDirs(root, "")
	if err != nil {
		return nil, err
	}
	var removed []Info
	for _, d := range dirs {
		in := inspect(d)
		if in.Err != "" || in.maxAge == 0 || !in.Written.Add(in.maxAge).Before(now) {
			continue
		}
		if _, err := os.Stat(filepath.Join(d, "unknown")); err == nil {
			continue
		}
		lock, err := lockFile(filepath.Join(d, lockName))
		if err != nil {
			continue
		}
		err = removeJournal(d, lock)
		if err != nil {
			return removed, fmt.Errorf("cannot remove expired journal %s: %w", d, err)
		}
		removed = append(removed, in)
	}
	return removed, nil
}

// removeJournal removes a journal and its lock. A process that opened the lock
// file before detects after locking it that the file was removed.
func removeJournal(dir string, lock *os.File) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockName && err == nil {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	path := filepath.Join(dir, lockName)
	busy := os.Remove(path)
	lock.Close()
	if busy != nil {
		os.Remove(path) // Windows cannot remove an open file, and nobody can open it until it is closed
	}
	os.Remove(dir)
	return err
}

// inPlace reports whether the name of an open file still refers to that file.
func inPlace(f *os.File) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(held, named)
}
