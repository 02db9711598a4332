package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"time"
)

// ref is the position of a pending block.
type ref struct {
	record
	seg  *segment
	off  int64
	done int // number of its samples that are done, while it is in flight
}

// shardQueue is the number of refs that a shard keeps in memory. Further blocks
// are searched in the segments.
const shardQueue = 256

// shard contains the pending blocks of one shard, in order: first the blocks in
// flight, then the blocks in the queue. Guarded by Journal.mu.
type shard struct {
	acked    uint64 // all blocks of the shard up to here were done when the journal was opened
	queue    []ref  // the next blocks
	inflight []ref  // returned and not done, ascending

	complete bool   // queue contains all pending blocks; otherwise:
	from     uint64 // the first block that is not in queue has this number or a higher one
	fromSeg  uint64 // it is at or after off in the segment whose first block is this
	off      int64

	stuck int // if not 0: for how many seconds its next segment could not be opened or read

	wake chan struct{} // capacity 1
}

func newShard() *shard { return &shard{complete: true, wake: make(chan struct{}, 1)} }

func (l *shard) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// low returns the lowest block that the shard may still send.
func (j *Journal) low(l *shard) uint64 {
	switch {
	case len(l.inflight) > 0:
		return l.inflight[0].seq
	case len(l.queue) > 0:
		return l.queue[0].seq
	case l.complete:
		return j.appended
	}
	return l.from
}

// admit adds a pending block. mu is held.
func (j *Journal) admit(r ref) {
	j.pending.add(&r)
	r.seg.pending.add(&r)
	l := j.shards[r.shard]
	if l.complete && len(l.queue) == shardQueue {
		l.complete = false
		l.from, l.fromSeg, l.off = r.seq, r.seg.first, r.off
	}
	if l.complete {
		l.queue = append(l.queue, r)
		l.notify()
	}
}

// Next returns the shard's next block, and waits for one if necessary. Its
// payload is in buf, or in new memory if buf is too small. The block stays the
// shard's next block until Ack or Drop, or until Keeps returns false. The only
// error is ctx's, and only if there is no block: a shard can still be emptied
// after ctx ended.
func (j *Journal) Next(ctx context.Context, shardNumber int, buf []byte) (Block, error) {
	return j.nextBehind(ctx, j.shards[shardNumber], 0, buf)
}

// After is like Next, for the block that follows b, which is in flight and
// stays in flight. A caller that sends several blocks as one gets them one by
// one, and finishes each of them.
func (j *Journal) After(ctx context.Context, b Block, buf []byte) (Block, error) {
	return j.nextBehind(ctx, j.shards[b.Shard], b.Seq, buf)
}

// TryAfter is like After, but returns false instead of waiting for a block.
func (j *Journal) TryAfter(b Block, buf []byte) (Block, bool) {
	l := j.shards[b.Shard]
	for {
		next, ok, wait := j.tryNext(l, b.Seq, buf)
		if ok || wait {
			return next, ok
		}
	}
}

// Woken returns a channel that receives when a shard may have another block. It
// is for callers that also wait for other events, so that they cannot use Next
// or After.
func (j *Journal) Woken(shardNumber int) <-chan struct{} { return j.shards[shardNumber].wake }

// nextBehind returns the shard's first block after a sequence number.
func (j *Journal) nextBehind(ctx context.Context, l *shard, seq uint64, buf []byte) (Block, error) {
	for {
		b, ok, wait := j.tryNext(l, seq, buf)
		if ok {
			return b, nil
		}
		if !wait {
			continue
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return Block{}, context.Cause(ctx)
		}
	}
}

// tryNext returns the shard's first block after a sequence number. If ok is
// false, wait reports whether to wait for a block or to try again immediately.
func (j *Journal) tryNext(l *shard, seq uint64, buf []byte) (b Block, ok, wait bool) {
	r, wait := j.takeBlock(l, seq)
	if r.seg == nil {
		return b, false, wait
	}
	b, err := r.read(buf)
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.release(r.seg)
	if err != nil {
		if j.waits(l, r.seg, err, maxStuck) {
			return b, false, true
		}
		j.damage(r.seg, fmt.Errorf("block %d of %d samples, at byte %d: %w", r.seq, r.samples, r.off, err))
		j.finish(l, l.indexAfter(r.seq-1), "corrupt")
		return b, false, false
	}
	l.stuck = 0
	return b, true, false
}

// indexAfter returns the index of the first block in flight after a sequence
// number, or the number of blocks in flight if there is none.
func (l *shard) indexAfter(seq uint64) int {
	i, _ := slices.BinarySearchFunc(l.inflight, seq+1, func(r ref, seq uint64) int { return cmp.Compare(r.seq, seq) })
	return i
}

// takeBlock puts the shard's first block after a sequence number in flight and
// acquires its segment. If it returns no segment and wait is false, try again.
func (j *Journal) takeBlock(l *shard, seq uint64) (r ref, wait bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := l.indexAfter(seq)
	if i == len(l.inflight) {
		for len(l.queue) > 0 && l.queue[0].seg.dead {
			l.queue = l.queue[1:]
		}
		if len(l.queue) == 0 && !l.complete {
			wait := j.refill(l)
			j.cross()
			return ref{}, wait
		}
		j.cross()
		if len(l.queue) == 0 || (len(j.barriers) > 0 && l.queue[0].seq >= j.barriers[0]) {
			return ref{}, true
		}
		l.inflight = append(l.inflight, l.queue[0])
		l.queue = l.queue[1:]
	}
	if !j.keeps(l, i, j.now()) {
		return ref{}, false
	}
	r = l.inflight[i]
	if err := j.acquire(r.seg); err != nil {
		if j.waits(l, r.seg, err, math.MaxInt) {
			return ref{}, true
		}
		j.damage(r.seg, err)
		j.finish(l, i, "corrupt")
		return ref{}, false
	}
	return r, false
}

// maxStuck is the number of seconds for which reading a block is retried: a bad
// disk must not delay readable blocks forever.
const maxStuck = 30

// waits reports whether to retry opening or reading a segment, for at most most
// seconds. maintain triggers the retries. A missing file and wrong bytes are
// permanent errors; all other errors, such as too many open files or a missing
// volume, may be temporary. mu is held.
func (j *Journal) waits(l *shard, s *segment, err error, most int) bool {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) || errors.Is(err, errChecksum) || l.stuck > most {
		l.stuck = 0
		return false
	}
	if l.stuck == 0 {
		l.stuck = 1
		j.o.Logger.Error("cannot read a journal segment; its blocks wait and are tried every second", "path", s.path, "err", err)
	}
	return true
}

// damage records that a part of a segment cannot be read, and logs this once.
// The lost blocks are counted where their number is known. mu is held, or the
// journal is not shared yet.
func (j *Journal) damage(s *segment, why error) {
	if !s.damaged {
		j.o.Logger.Error("a journal segment is damaged; the readable part is sent, the rest is lost and counted, and the file is kept", "path", s.path, "err", why)
	}
	s.damaged = true
}

// cross removes the barriers below which all blocks are done. mu is held.
func (j *Journal) cross() {
	for len(j.barriers) > 0 {
		for _, l := range j.shards {
			if j.low(l) < j.barriers[0] {
				return
			}
		}
		j.barriers = j.barriers[1:]
		for _, l := range j.shards {
			l.notify()
		}
	}
}

// refill searches for the shard's next blocks in the segments. wait means that
// the segment cannot be read now. mu is held, but not while a segment is read.
func (j *Journal) refill(l *shard) (wait bool) {
	i := slices.IndexFunc(j.segments, func(s *segment) bool { return s.last >= l.from && s.pending.blocks > 0 })
	if i < 0 {
		l.complete = true
		return false
	}
	s := j.segments[i]
	off := int64(segmentHeaderSize)
	if s.first == l.fromSeg {
		off = l.off
	} else if s.damaged {
		off = 0
	}
	if err := j.acquire(s); err != nil {
		if j.waits(l, s, err, math.MaxInt) {
			return true
		}
		j.damage(s, err)
		l.from = s.last + 1 // maintain counts them
		return false
	}
	sc := scanner{r: s.f, off: off, end: s.size}
	last, from := s.last, l.from
	me := slices.Index(j.shards, l)
	var found []ref
	j.mu.Unlock()
	var skipped int64
	seen := max(from, s.first) - 1
	for len(found) < shardQueue {
		r, off, ok := sc.next()
		if !ok {
			seen = max(seen, last)
			skipped += sc.torn
			break
		}
		skipped += sc.skipped
		if r.seq <= seen || r.seq > last {
			continue
		}
		seen = r.seq
		if r.shard == me && r.seq > l.acked {
			found = append(found, ref{record: r, seg: s, off: off})
		}
	}
	j.mu.Lock()
	defer j.release(s)
	if sc.err != nil {
		if j.waits(l, s, sc.err, maxStuck) {
			return true
		}
		j.damage(s, sc.err)
		seen = last
	}
	if !s.damaged {
		j.skip(s, skipped)
	}
	l.stuck = 0
	l.queue = append(l.queue, found...)
	l.from, l.fromSeg, l.off = seen+1, s.first, sc.off
	return false
}

var errChecksum = errors.New("checksum does not match")

// read reads the block. Its header is already known.
func (r *ref) read(buf []byte) (Block, error) {
	if cap(buf) < r.size {
		buf = make([]byte, r.size)
	}
	buf = buf[:r.size]
	if _, err := r.seg.f.ReadAt(buf, r.off+recordHeaderSize); err != nil {
		return Block{}, err
	}
	if crc32.Checksum(buf, castagnoli) != r.crc {
		return Block{}, errChecksum
	}
	return Block{Shard: r.shard, Kind: r.kind, Samples: r.samples, First: r.first, Payload: buf, Seq: r.seq, Time: r.time}, nil
}

// Ack records that a block in flight was delivered.
func (j *Journal) Ack(b Block) { j.Drop(b, "") }

// Done records that some samples of a block in flight are delivered or lost and
// therefore no longer pending. After a restart, the whole block is repeated.
func (j *Journal) Done(b Block, samples int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.shards[b.Shard]
	i, ok := l.flying(b)
	if !ok || l.inflight[i].seg.dead {
		return
	}
	r := &l.inflight[i]
	samples = min(samples, r.samples-r.done)
	r.done += samples
	j.pending.count(r.kind, -int64(samples))
	r.seg.pending.count(r.kind, -int64(samples))
}

// Drop discards a block in flight and counts it under reason, from a closed
// set.
func (j *Journal) Drop(b Block, reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.shards[b.Shard]
	if i, ok := l.flying(b); ok {
		j.finish(l, i, reason)
	}
}

// Keeps reports whether a block in flight must still be sent. If not, it
// exceeded a limit and was counted.
func (j *Journal) Keeps(b Block) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.shards[b.Shard]
	i, ok := l.flying(b)
	return ok && j.keeps(l, i, j.now())
}

// flying returns the index of b among the blocks in flight.
func (l *shard) flying(b Block) (i int, ok bool) {
	i = l.indexAfter(b.Seq - 1)
	return i, i < len(l.inflight) && l.inflight[i].seq == b.Seq
}

// keeps is like Keeps, for the i-th block in flight. mu is held.
func (j *Journal) keeps(l *shard, i int, now time.Time) bool {
	switch r := &l.inflight[i]; {
	case r.seg.dead:
		l.inflight = slices.Delete(l.inflight, i, i+1) // counted with its segment
	case j.expired(r.time, now):
		j.finish(l, i, "max_age")
	default:
		return true
	}
	j.cross()
	return false
}

func (j *Journal) expired(t int64, now time.Time) bool {
	return j.limits.MaxAge > 0 && t < now.Add(-j.limits.MaxAge).UnixMilli()
}

// finish ends the i-th block in flight. An empty reason means that it was
// delivered. mu is held.
func (j *Journal) finish(l *shard, i int, reason string) {
	r := l.inflight[i]
	l.inflight = slices.Delete(l.inflight, i, i+1)
	if !r.seg.dead {
		j.pending.sub(&r)
		r.seg.pending.sub(&r)
		if reason != "" {
			t := j.dropped[reason]
			t.add(&r)
			j.dropped[reason] = t
		}
		if r.seg.pending.blocks == 0 && r.seg != j.active {
			j.remove(r.seg)
		}
	}
	j.cross()
}
