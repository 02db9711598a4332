package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/engine/files"
)

const (
	checkpointName = "positions.checkpoint"
	// nextName is the checkpoint that is not old enough yet.
	nextName = "positions.checkpoint.next"
)

// bootID returns an identifier of the current boot of the machine, or "" if there
// is none.
func bootID() string {
	b, err := files.Read("/proc/sys/kernel/random/boot_id", 1<<10)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// A machine that loses power loses data that was not written to the disk. The log
// may then contain lines as done that a journal accepted and lost. Therefore,
// checkpoint writes the current state as the next checkpoint. It becomes the
// checkpoint at the next call, when journals have written to the disk everything
// that was done until then: the system does so after 30 seconds at the latest.
// Only one goroutine may call it at a time. Nothing else waits while it waits for
// the disk.
func (s *positions) checkpoint() error {
	if s.boot == "" {
		return nil // rewind could not decide when to use it
	}
	dir := filepath.Dir(s.path)
	next := filepath.Join(dir, nextName)
	s.mu.Lock()
	s.applyDone()
	b := s.state()
	s.mu.Unlock()
	if s.aging {
		if err := os.Rename(next, filepath.Join(dir, checkpointName)); err != nil {
			s.aging, s.checkpointed = false, 0
			return fmt.Errorf("cannot replace the checkpoint of positions: %w", err)
		}
		s.aging = false
	}
	sum := xxhash.Sum64(b)
	if sum == s.checkpointed {
		return nil // it exists, possibly only since now
	}
	if err := writeSynced(next, b); err != nil {
		return fmt.Errorf("cannot write the checkpoint of positions: %w", err)
	}
	s.aging, s.checkpointed = true, sum
	return nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// rewind resets s, which was loaded, to the checkpoint if the machine was
// restarted and not only the process. Ranges since the checkpoint whose
// boundaries are in the log are open again, and are sent again with the same
// boundaries. It reports whether it changed s.
func (s *positions) rewind() (bool, error) {
	c := &positions{path: filepath.Join(filepath.Dir(s.path), checkpointName), all: map[uint64]*position{}}
	b, err := files.Read(c.path, files.MaxOwn)
	if err == nil {
		err = c.load(b)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	s.next = max(s.next, c.next) // a number identifies the same position in both
	if s.wrote == "" {
		s.wrote = c.wrote // nothing is left of the log
	}
	if s.closed || s.boot == "" || s.wrote == "" || s.wrote == s.boot {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the checkpoint of positions: %w", err)
	}
	for n, p := range s.all {
		old := c.all[n]
		if old == nil { // it is newer than the checkpoint
			old = &position{read: p.began, head: p.head}
		}
		p.head, p.tail, p.read, p.open, p.finished = old.head, old.tail, old.read, old.open, old.finished
		for _, r := range s.recent[n] {
			if r.from == p.read {
				p.open = append(p.open, r.span)
				p.read, p.tail = r.to, r.tail
			}
		}
	}
	for n, p := range c.all {
		if s.all[n] == nil {
			s.all[n] = p
		}
	}
	return true, nil
}

// sentRange is a range that was sent, and the mark of its end.
type sentRange struct {
	span
	tail mark
}

// remember keeps a range from the log of a machine that may have lost power.
func (s *positions) remember(n uint64, r sentRange) {
	if s.recent != nil && s.wrote != s.boot {
		s.recent[n] = append(s.recent[n], r)
	}
}
