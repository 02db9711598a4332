package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// load reads the directory.
func (j *Journal) load() error {
	m, err := j.readMeta()
	if err != nil {
		return err
	}
	if err := j.findSegments(); err != nil {
		return err
	}
	done, next := j.readCursor()
	shards := m.Shards
	if shards == 0 {
		shards = j.o.Shards
	}
	for range MaxShards {
		j.shards = append(j.shards, newShard())
	}
	low := uint64(0) // all blocks below are done
	if len(done) > 0 {
		low = slices.Min(done)
	}
	for i, d := range done {
		j.shards[i].acked = max(d, 1) - 1
	}
	j.next = max(next, 1)
	for _, s := range j.segments {
		if err := j.scan(s, low); err != nil {
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
		shards = j.o.Shards
	}
	for i := shards; i < MaxShards; i++ {
		if l := j.shards[i]; len(l.queue) > 0 || !l.complete {
			shards = i + 1 // the meta file was lost or is wrong
		}
	}
	j.shards = j.shards[:shards]
	j.removeSegments()
	if err := j.writeMeta(); err != nil {
		if m.Version == 0 && j.pending.blocks == 0 {
			return err
		}
		// The journal may have filled the disk. Only sending its blocks makes room
		// again.
		j.o.Logger.Warn("cannot note in the journal what it is for; what is in it is sent", "dir", j.dir, "err", err)
	}
	return nil
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
		if err != nil || !sound {
			j.damage(s, cmp.Or(err, errors.New("its header is not valid")))
		}
		s.after = !sound || flags&flagBarrier != 0 // waiting unnecessarily does no harm
		known = append(known, s)
	}
	j.segments = known
	return nil
}

// scan reads a segment that an earlier process wrote. An incomplete record at
// the end of the last segment is cut off if the process died while it wrote it.
func (j *Journal) scan(s *segment, low uint64) error {
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
		if sc.skipped > 0 {
			j.skip(s, sc.skipped)
			// Sequence numbers in a segment have no gaps.
			j.countLost(max(s.last+1, low), r.seq)
		}
		s.size, s.newest = sc.off, max(s.newest, r.time)
		if r.seq <= s.last || r.seq < s.first {
			j.skip(s, sc.off-off) // a copy, or from another segment: never sent twice
			continue
		}
		s.last = r.seq
		if l := j.shards[r.shard]; r.seq > l.acked {
			j.admit(ref{record: r, seg: s, off: off})
		}
	}
	j.size += s.size
	switch last := s == j.segments[len(j.segments)-1]; {
	case sc.err != nil:
		j.damage(s, sc.err)
		j.skip(s, size-s.size)
	case sc.torn > 0 && last && unfinished(s.f, size-sc.torn, size):
		j.o.Logger.Warn("cut off an unfinished write at the end of a journal segment", "path", s.path, "bytes", sc.torn)
		j.skipped += sc.torn
		return os.Truncate(s.path, s.size)
	case sc.torn > 0:
		j.skip(s, sc.torn)
		j.countLost(s.last+1, s.last+2) // at least
	}
	return nil
}

// unfinished reports whether the bytes of a segment from off on may be left
// over from an interrupted write: the beginning of records if the process died,
// or zeros if the machine crashed.
func unfinished(r io.ReaderAt, off, end int64) bool {
	var hdr [recordHeaderSize]byte
	n, _ := r.ReadAt(hdr[:min(recordHeaderSize, end-off)], off) // missing bytes are not the beginning of a record
	if n < recordHeaderSize {
		return true
	}
	_, valid := parseRecord(hdr[:])
	return valid || hdr == [recordHeaderSize]byte{}
}

// countLost counts the blocks from from to below to as lost. Their content is
// unknown.
func (j *Journal) countLost(from, to uint64) {
	if from >= to {
		return
	}
	t := j.dropped["corrupt"]
	t.blocks += int64(to - from)
	j.dropped["corrupt"] = t
}

// skip counts n bytes of s that are not records.
func (j *Journal) skip(s *segment, n int64) {
	if n == 0 {
		return
	}
	j.damage(s, errors.New("there are bytes in it that are no blocks"))
	j.skipped += n
}

func fileSize(path string) (int64, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
