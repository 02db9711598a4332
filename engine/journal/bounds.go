package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// acquire opens a segment's file, or shares the open file. mu is held, or the
// journal is not shared yet.
func (j *Journal) acquire(s *segment) error {
	if s.refs == 0 {
		f, err := j.o.open(s.path, os.O_RDONLY)
		if err != nil {
			return err
		}
		s.f = f
	}
	s.refs++
	return nil
}

func (j *Journal) release(s *segment) {
	s.refs--
	if s.refs > 0 {
		return
	}
	s.f.Close()
	s.f = nil
	if s.dead {
		j.unlink(s)
	}
}

// remove removes a segment from the list of the journal. mu is held.
func (j *Journal) remove(s *segment) {
	i := slices.Index(j.segments, s)
	j.segments = slices.Delete(j.segments, i, i+1)
	s.dead = true
	j.size -= s.size
	j.wakeRoom()
	if s.refs == 0 {
		j.unlink(s)
	}
}

// unlink removes a segment's file. If it is damaged, the file is kept for
// inspection, up to a small number of files.
func (j *Journal) unlink(s *segment) {
	if !s.damaged {
		if err := os.Remove(s.path); err != nil && !os.IsNotExist(err) {
			j.o.Logger.Error("cannot remove a journal segment", "path", s.path, "err", err)
		}
		return
	}
	aside := s.path + damagedSuffix
	if err := os.Rename(s.path, aside); err != nil {
		if !os.IsNotExist(err) {
			j.o.Logger.Error("cannot set a damaged journal segment aside", "path", s.path, "err", err)
		}
		return
	}
	j.o.Logger.Warn("damaged journal segment is set aside", "path", aside)
	for all := j.kept(); len(all) > maxKept; all = all[1:] {
		os.Remove(filepath.Join(j.dir, all[0]))
	}
}

// The newest damaged segments are kept, with a suffix added to their name.
const (
	damagedSuffix = ".damaged"
	maxKept       = 3
)

// kept returns the names of the damaged segments that are kept, oldest first.
func (j *Journal) kept() (names []string) {
	entries, _ := os.ReadDir(j.dir) // on error, the files are kept
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), damagedSuffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// removeKept removes the oldest kept damaged segment, and reports whether there
// was one.
func (j *Journal) removeKept() bool {
	all := j.kept()
	return len(all) > 0 && os.Remove(filepath.Join(j.dir, all[0])) == nil
}

// drop removes a segment with its pending blocks. mu is held.
func (j *Journal) drop(s *segment, reason string) {
	if s.pending.blocks > 0 {
		t := j.dropped[reason]
		t.addAll(s.pending, 1)
		j.dropped[reason] = t
		j.pending.addAll(s.pending, -1)
		s.pending = tally{}
	}
	j.remove(s)
	for _, l := range j.shards {
		l.notify()
	}
}

// removeSegments removes sealed segments without pending blocks. mu is held.
func (j *Journal) removeSegments() {
	for _, s := range slices.Clone(j.segments) {
		if s != j.active && s.pending.blocks == 0 {
			j.remove(s)
		}
	}
}

func (j *Journal) wakeRoom() {
	close(j.room)
	j.room = make(chan struct{})
}

// maintain performs the work that Run does every second.
func (j *Journal) maintain() {
	j.writeMu.Lock()
	policy := j.policy()
	if j.dirty && policy == FsyncInterval {
		if err := j.active.f.Sync(); err != nil {
			j.o.Logger.Error("cannot sync journal segment", "path", j.active.path, "err", err)
		} else {
			j.dirty = false
		}
	}
	now := j.now()
	j.mu.Lock()
	if s := j.active; s != nil && (j.expired(s.newest, now) || s.pending.blocks == 0) && s.size >= j.segmentSize()/2 {
		j.seal()
	}
	j.writeMu.Unlock()
	j.removeSegments()
	low := j.appended
	for _, l := range j.shards {
		low = min(low, j.low(l))
	}
	for _, s := range slices.Clone(j.segments) {
		if s == j.active {
			continue
		}
		if j.expired(s.newest, now) {
			j.drop(s, "max_age")
		} else if s.last < low {
			// No shard will reach the remaining blocks, because their headers were
			// damaged after they were written.
			s.damaged = true
			j.drop(s, "corrupt")
		}
	}
	for _, l := range j.shards {
		if l.stuck > 0 {
			l.stuck++
			l.notify()
		}
	}
	j.cross()
	cursor := j.cursor()
	j.mu.Unlock()
	err := j.saveCursor(cursor, policy)
	if failed := err != nil; failed != j.saveErr {
		j.saveErr = failed
		if failed {
			j.o.Logger.Error("cannot save the journal's cursor; a crash would repeat what was sent since", "err", err)
		} else {
			j.o.Logger.Info("the journal's cursor is saved again")
		}
	}
}
