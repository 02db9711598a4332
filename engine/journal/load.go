package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// load reads what is in the directory.
func (j *Journal) load() error {
	m, err := j.readMeta()
	if err != nil {
		return err
	}
	if err := j.findSegments(); err != nil {
		return err
	}
	done, next := j.readCursor()
	lanes := m.Lanes
	if lanes == 0 {
		lanes = j.o.Lanes
	}
	for range MaxLanes {
		j.lanes = append(j.lanes, newLane())
	}
	for i, d := range done {
		j.lanes[i].acked = max(d, 1) - 1
	}
	j.next = max(next, 1)
	for _, s := range j.segments {
		if err := j.scan(s); err != nil {
			return err
		}
		j.next = max(j.next, s.first, s.last+1)
	}
	j.appended = j.next
	if j.pending.blocks > 0 {
		for _, s := range j.segments {
			if s.after {
				j.barriers = append(j.barriers, s.first)
			}
		}
		j.barriers = append(j.barriers, j.next)
		j.parted = true
	} else {
		lanes = j.o.Lanes
	}
	for i := lanes; i < MaxLanes; i++ {
		if l := j.lanes[i]; len(l.queue) > 0 || !l.complete {
			lanes = i + 1 // the meta file was lost or is wrong
		}
	}
	j.lanes = j.lanes[:lanes]
	j.sweep()
	return j.writeMeta()
}

func (j *Journal) findSegments() error {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		var first uint64
		if _, err := fmt.Sscanf(e.Name(), "%020d.seg", &first); err != nil || e.Name() != filepath.Base(segmentPath("", first)) {
			continue
		}
		j.segments = append(j.segments, &segment{path: filepath.Join(j.dir, e.Name()), first: first, last: first - 1})
	}
	slices.SortFunc(j.segments, func(a, b *segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	known := j.segments[:0]
	for _, s := range j.segments {
		if err := j.acquire(s); err != nil {
			return err
		}
		flags, sound, err := checkSegmentHeader(s.f)
		j.release(s)
		if errors.Is(err, errUnknownVersion) {
			if err := j.setAside(s.path, err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		s.damaged = !sound
		s.after = !sound || flags&flagBarrier != 0 // to wait in vain does no harm
		known = append(known, s)
	}
	j.segments = known
	return nil
}

// scan learns what is in a segment that was written by an earlier run. What is
// no record at its end is cut off: the process died while it wrote.
func (j *Journal) scan(s *segment) error {
	if err := j.acquire(s); err != nil {
		return err
	}
	defer j.release(s)
	size, err := fileSize(s.path)
	if err != nil {
		return err
	}
	sc := scanner{r: s.f, end: size}
	if !s.damaged {
		sc.off = segmentHeaderSize
	}
	s.size = min(size, segmentHeaderSize)
	for {
		r, off, ok := sc.next()
		if !ok {
			break
		}
		j.skip(s, sc.skipped)
		s.size, s.newest = sc.off, max(s.newest, r.time)
		if r.seq <= s.last || r.seq < s.first {
			j.skip(s, sc.off-off) // a copy, or of another segment: never sent twice
			continue
		}
		s.last = r.seq
		if l := j.lanes[r.lane]; r.seq > l.acked {
			j.admit(ref{record: r, seg: s, off: off})
		}
	}
	if sc.err != nil {
		return fmt.Errorf("cannot read %s: %w", s.path, sc.err)
	}
	if sc.torn > 0 && s != j.segments[len(j.segments)-1] {
		j.skip(s, sc.torn)
	} else if sc.torn > 0 {
		j.o.Logger.Warn("cut off an unfinished write at the end of a journal segment", "path", s.path, "bytes", sc.torn)
		j.skipped += sc.torn
		if err := os.Truncate(s.path, s.size); err != nil {
			return err
		}
	}
	j.size += s.size
	return nil
}

// skip counts n bytes of s that are no records.
func (j *Journal) skip(s *segment, n int64) {
	if n == 0 {
		return
	}
	if !s.damaged {
		j.o.Logger.Error("journal segment is damaged; what can be read is sent", "path", s.path)
	}
	s.damaged = true
	j.skipped += n
}

func fileSize(path string) (int64, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
