package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// appending is one call of Append. done and err are guarded by Journal.writeMu.
type appending struct {
	blocks []Block
	done   bool
	err    error
}

// Full reports whether Room would wait.
func (j *Journal) Full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.full()
}

// full is called with mu held.
func (j *Journal) full() bool {
	return j.limits.MaxSize > 0 && j.size >= j.limits.MaxSize && j.limits.OnFull != OnFullDropOldest
}

// Room waits until the journal is below its MaxSize, if its policy is to block.
// If ctx ends first, it returns ctx's error. Call it before gathering a block:
// Append itself never waits for room.
func (j *Journal) Room(ctx context.Context) error {
	for {
		j.mu.Lock()
		full, size, room := j.full(), j.size, j.room
		j.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("journal %s is full (%d bytes): %w", j.dir, size, context.Cause(ctx))
		}
	}
}

// Append writes all of blocks to the journal, or none of them. The payloads may
// be reused when it returns. Concurrent calls share one write, and one sync if
// every write is synced. After an error, the journal is unchanged, and Append
// works again as soon as the disk does.
func (j *Journal) Append(blocks ...Block) error {
	for i := range blocks {
		if b := &blocks[i]; b.Shard < 0 || b.Shard >= len(j.shards) || len(b.Payload) > maxPayload {
			return fmt.Errorf("BUG: block of %d bytes for shard %d of %d", len(b.Payload), b.Shard, len(j.shards))
		}
	}
	a := &appending{blocks: blocks}
	j.queueMu.Lock()
	j.queue = append(j.queue, a)
	j.queueMu.Unlock()

	// The goroutine that gets the lock writes for all calls that have queued.
	j.writeMu.Lock()
	defer j.writeMu.Unlock()
	if a.done {
		return a.err
	}
	j.queueMu.Lock()
	group := j.queue
	j.queue = nil
	j.queueMu.Unlock()
	err := j.write(group)
	for _, a := range group {
		a.done, a.err = true, err
		if err != nil && len(group) > 1 {
			a.err = j.write([]*appending{a}) // a smaller one may fit
		}
	}
	j.wrote(err)
	return a.err
}

// wrote records why the last write failed, and logs changes.
func (j *Journal) wrote(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch was := j.unwritten; {
	case err != nil && was == nil:
		j.o.Logger.Error("cannot write the journal; what comes is refused until it can be written", "err", err)
	case err == nil && was != nil:
		j.o.Logger.Info("the journal is written again", "dir", j.dir)
	}
	j.unwritten = err
}

// Unwritten returns why the last Append failed, or nil if it succeeded.
func (j *Journal) Unwritten() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unwritten
}

func (j *Journal) write(group []*appending) error {
	n := int64(segmentHeaderSize)
	for _, a := range group {
		for i := range a.blocks {
			n += recordHeaderSize + int64(len(a.blocks[i].Payload))
		}
	}
	j.mu.Lock()
	drops := j.limits.OnFull == OnFullDropOldest
	for drops && j.limits.MaxSize > 0 && j.size+n > j.limits.MaxSize && j.dropOldest("max_size") {
	}
	j.mu.Unlock()
	for {
		err := j.tryWrite(group, n)
		if err == nil {
			return nil
		}
		j.mu.Lock()
		freed := j.recycle() || errors.Is(err, syscall.ENOSPC) && (j.removeKept() || drops && j.makeRoom(err))
		j.mu.Unlock()
		if !freed {
			return fmt.Errorf("cannot write journal %s: %w", j.dir, err)
		}
	}
}

func (j *Journal) tryWrite(group []*appending, n int64) error {
	if err := j.activate(n); err != nil {
		return err
	}
	s := j.active
	buf := j.scratch[:0]
	if s.size == 0 {
		flags := uint32(0)
		if j.parted {
			flags = flagBarrier
		}
		buf = appendSegmentHeader(buf, s.first, flags)
	}
	now := j.now().UnixMilli()
	next := j.next
	for _, a := range group {
		for i := range a.blocks {
			b := &a.blocks[i]
			b.Seq, b.Time = next, now
			buf = appendRecord(buf, next, b)
			next++
		}
	}
	if cap(buf) <= 4<<20 {
		j.scratch = buf
	}
	_, err := s.f.WriteAt(buf, s.size)
	always := j.policy() == FsyncAlways
	if err == nil && always {
		err = s.f.Sync()
	}
	if err != nil {
		if terr := s.f.Truncate(s.size); terr != nil {
			// The part of the blocks that was written stays in the file. The blocks were
			// not accepted, but may be sent after a restart, so their numbers must not
			// be reused.
			j.o.Logger.Error("cannot cut off an unfinished write; the journal goes on in a new segment", "path", s.path, "err", terr)
			j.next = next
			j.mu.Lock()
			j.seal()
			j.removeSegments()
			j.mu.Unlock()
		}
		return err
	}
	j.next = next
	j.dirty = !always
	j.parted = false // the barrier, if any, is in the segment's header

	j.mu.Lock()
	defer j.mu.Unlock()
	off := s.size
	if off == 0 {
		off = segmentHeaderSize
	}
	j.size += int64(len(buf))
	start := s.size
	s.size += int64(len(buf))
	s.newest = max(s.newest, now)
	for _, a := range group {
		for i := range a.blocks {
			b := &a.blocks[i]
			r := ref{seg: s, off: off, record: record{
				size: len(b.Payload), seq: b.Seq, time: now, first: b.First, samples: b.Samples, shard: b.Shard, kind: b.Kind,
				crc: binary.LittleEndian.Uint32(buf[off-start+crcOffset:]),
			}}
			off += recordHeaderSize + int64(r.size)
			s.last = r.seq
			j.appended = r.seq + 1
			j.admit(r)
		}
	}
	return nil
}

// activate ensures that n more bytes can be written to the active segment.
func (j *Journal) activate(n int64) error {
	j.mu.Lock()
	if s := j.active; s != nil && s.size > 0 && s.size+n > j.segmentSize() {
		j.seal()
		j.removeSegments()
	}
	j.mu.Unlock()
	if j.active != nil {
		return nil
	}
	s := &segment{path: segmentPath(j.dir, j.next), first: j.next, last: j.next - 1, refs: 1}
	f, err := j.o.open(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	if err := j.syncDirs(); err != nil {
		return errors.Join(err, f.Close(), os.Remove(s.path))
	}
	s.f = f
	j.mu.Lock()
	j.active = s
	j.segments = append(j.segments, s)
	j.mu.Unlock()
	return nil
}

// syncDirs forces the name of a new segment to the disk if the policy syncs its
// content. Otherwise, a crash of the machine can lose a file that was synced.
func (j *Journal) syncDirs() error {
	if j.policy() == FsyncNone {
		return nil
	}
	return errors.Join(j.o.syncDir(j.dir), j.o.syncDir(filepath.Dir(j.dir)))
}

// seal closes the active segment for writing. writeMu and mu are held.
func (j *Journal) seal() {
	s := j.active
	j.active = nil
	if j.dirty && j.limits.Fsync == FsyncInterval {
		if err := s.f.Sync(); err != nil {
			j.o.Logger.Error("cannot sync journal segment", "path", s.path, "err", err)
		}
	}
	j.dirty = false
	j.release(s)
}

// recycle removes the active segment if everything in it was delivered, and
// reports whether it did. A full disk may have no room until this segment is
// removed. writeMu and mu are held.
func (j *Journal) recycle() bool {
	if s := j.active; s == nil || s.size == 0 || s.pending.blocks > 0 {
		return false
	}
	j.seal()
	j.removeSegments()
	return true
}

// makeRoom drops the oldest segment because of err, a full disk. It logs this
// at most once per minute. writeMu and mu are held.
func (j *Journal) makeRoom(err error) bool {
	if !j.dropOldest("disk_full") {
		return false
	}
	if now := j.now(); now.Sub(j.crowded) >= time.Minute {
		j.crowded = now
		j.o.Logger.Warn("the disk is full; the oldest blocks of the journal are dropped and counted", "dir", j.dir, "err", err)
	}
	return true
}

// dropOldest drops the oldest segment, which may be the active one, and reports
// whether there was one. writeMu and mu are held.
func (j *Journal) dropOldest(reason string) bool {
	for _, s := range j.segments {
		if s.size == 0 {
			continue
		}
		if s == j.active {
			j.seal()
		}
		j.drop(s, reason)
		return true
	}
	return false
}
