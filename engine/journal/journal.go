package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// MaxLanes is the most lanes a journal can have.
const MaxLanes = 64

// Block is what is appended, handed out and acknowledged as one.
type Block struct {
	Lane    int    // 0 ≤ Lane < Journal.Lanes()
	Kind    uint8  // the caller's: how Payload is encoded
	Samples int    // in Payload, for accounting
	First   int64  // lowest sample timestamp in Payload, the caller's unit
	Payload []byte // never changed by the journal; at most 256 MiB

	Seq  uint64 // set by Append; ascending, unique in the journal
	Time int64  // set by Append: when, Unix ms
}

// Fsync says when written blocks are forced to the disk.
type Fsync string

// The fsync policies. A killed process loses nothing under any of them; a
// crashed machine loses what the kernel had not written yet.
const (
	FsyncNone     Fsync = "none"     // the kernel decides
	FsyncInterval Fsync = "interval" // every second
	FsyncAlways   Fsync = "always"   // before Append returns
)

// OnFull says what happens when the journal reaches MaxSize.
type OnFull string

// The policies of a full journal.
const (
	OnFullBlock      OnFull = "block"       // Room waits
	OnFullDropOldest OnFull = "drop_oldest" // the oldest segment is dropped, which is counted
)

// Limits bound a journal. They can be changed while it works.
type Limits struct {
	MaxSize int64         // bytes on disk; 0 means no bound
	MaxAge  time.Duration // of a block since Append; 0 means no bound
	Fsync   Fsync         // "" means FsyncNone
	OnFull  OnFull        // "" means OnFullBlock
}

// Options are what Open needs.
type Options struct {
	// Lanes is how many lanes a new journal gets, 1 to MaxLanes. A journal with
	// pending blocks keeps the number it has.
	Lanes  int
	Limits Limits
	// Owner is written into the journal, for who looks for it.
	Owner Owner
	// SegmentSize is where a new segment is begun; 0 means 32 MiB. It is
	// at most an eighth of MaxSize, or 64 KiB if that is more.
	SegmentSize int64
	Clock       clock.Clock
	Logger      *slog.Logger

	open func(path string, flag int) (file, error)
}

// ErrLocked is what Open returns when somebody has the journal open.
var ErrLocked = errors.New("journal is in use")

var errLocked = ErrLocked

// Journal is an open journal. All methods are safe for concurrent use, but
// that one goroutine at a time works on a lane.
type Journal struct {
	dir   string
	o     Options
	lock  *os.File
	lanes []*lane

	queueMu sync.Mutex
	queue   []*appending

	writeMu sync.Mutex // before mu; guards the fields below and writing to active
	next    uint64     // sequence number of the next block
	scratch []byte
	dirty   bool // written since the last sync
	parted  bool // the next segment begins behind a barrier

	mu       sync.Mutex
	limits   Limits
	segments []*segment // ascending; the active one is last
	active   *segment   // nil until something is appended; changed under writeMu and mu
	appended uint64     // all blocks below are in the segments or gone
	barriers []uint64   // ascending; blocks from each wait until those below are done
	size     int64      // of all segments
	pending  tally
	dropped  map[string]tally
	skipped  int64         // bytes that were no records
	room     chan struct{} // closed and replaced when size shrinks or limits change

	saved   []byte // the cursor file's content; of who calls saveCursor
	saveErr bool   // the last save failed
}

// Open opens the journal in dir, or makes it. The error is ErrLocked when it
// is open already, in this process or another.
func Open(dir string, o Options) (*Journal, error) {
	if o.Lanes < 1 || o.Lanes > MaxLanes {
		return nil, fmt.Errorf("journal lanes must be 1 to %d, not %d", MaxLanes, o.Lanes)
	}
	if o.open == nil {
		o.open = openOSFile
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("cannot make journal: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err == nil && !inPlace(lock) {
		lock.Close()
		err = errLocked // by RemoveExpired, which removed it
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock journal %s: %w", dir, err)
	}
	j := &Journal{dir: dir, o: o, lock: lock, limits: o.Limits, room: make(chan struct{}), dropped: map[string]tally{}}
	if err := j.load(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("cannot open journal %s: %w", dir, err)
	}
	return j, nil
}

// Dir returns the journal's directory.
func (j *Journal) Dir() string { return j.dir }

// Lanes returns the number of lanes. It does not change while the journal is open.
func (j *Journal) Lanes() int { return len(j.lanes) }

// Configure changes the limits and what is noted of the owner from now on.
func (j *Journal) Configure(o Owner, l Limits) error {
	j.mu.Lock()
	j.limits, j.o.Owner = l, o
	j.wakeRoom()
	j.mu.Unlock()
	return j.writeMeta()
}

// Barrier makes the blocks that are appended from now on wait until all before
// them are done: whoever changes what a lane stands for keeps the order of what
// is in it.
func (j *Journal) Barrier() {
	j.writeMu.Lock()
	defer j.writeMu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.barriers); n == 0 || j.barriers[n-1] != j.appended {
		j.barriers = append(j.barriers, j.appended)
	}
	j.cross()
	if len(j.barriers) == 0 {
		return
	}
	j.parted = true
	if j.active != nil && j.active.size > 0 {
		j.seal()
		j.sweep()
	}
}

// Run saves the cursor and enforces the bounds every second, until ctx ends.
func (j *Journal) Run(ctx context.Context) error {
	t := j.o.Clock.NewTimer(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C():
			j.maintain()
			t.Reset(time.Second)
		case <-ctx.Done():
			return nil
		}
	}
}

// Close saves the cursor and closes the journal. Nobody may be using it.
func (j *Journal) Close() error {
	j.writeMu.Lock()
	defer j.writeMu.Unlock()
	var errs []error
	if j.active != nil && j.policy() != FsyncNone {
		errs = append(errs, j.active.f.Sync())
	}
	policy := j.policy()
	j.mu.Lock()
	if j.active != nil {
		j.seal()
	}
	j.sweep()
	cursor := j.cursor()
	j.mu.Unlock()
	errs = append(errs, j.saveCursor(cursor, policy), j.lock.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot close journal %s: %w", j.dir, err)
	}
	return nil
}

func (j *Journal) policy() Fsync {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.limits.Fsync == "" {
		return FsyncNone
	}
	return j.limits.Fsync
}

// segmentSize is called with mu held.
func (j *Journal) segmentSize() int64 {
	size := j.o.SegmentSize
	if size == 0 {
		size = 32 << 20
	}
	if j.limits.MaxSize > 0 {
		size = min(size, max(j.limits.MaxSize/8, 64<<10))
	}
	return size
}

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

// inPlace reports whether an open file is still the one of its name.
func inPlace(f *os.File) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(held, named)
}
