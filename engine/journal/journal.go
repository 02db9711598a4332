package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// MaxShards is the maximum number of shards in a journal.
const MaxShards = 64

// Block is the unit of appending, reading and acknowledging.
type Block struct {
	Shard   int    // 0 ≤ Shard < Journal.Shards()
	Kind    uint8  // the caller's encoding of Payload
	Samples int    // number in Payload, for accounting
	First   int64  // lowest sample timestamp in Payload, in the caller's unit
	Payload []byte // never changed by the journal; at most 256 MiB

	Seq  uint64 // set by Append; ascending, unique in the journal
	Time int64  // set by Append: the time of the append in Unix ms
}

// Fsync specifies when written blocks are forced to the disk.
type Fsync string

// The fsync policies. No policy loses data if the process is killed. If the
// machine crashes, data that the kernel has not written yet is lost.
const (
	FsyncNone     Fsync = "none"     // the kernel decides
	FsyncInterval Fsync = "interval" // every second
	FsyncAlways   Fsync = "always"   // before Append returns
)

// OnFull specifies what happens when the journal reaches MaxSize.
type OnFull string

// The policies of a full journal.
const (
	OnFullBlock      OnFull = "block"       // Room waits
	OnFullDropOldest OnFull = "drop_oldest" // the oldest segment is dropped and counted
)

// Limits are the limits of a journal. They can be changed while it is open.
type Limits struct {
	MaxSize int64         // bytes on disk; 0 means no limit
	MaxAge  time.Duration // age of a block since Append; 0 means no limit
	Fsync   Fsync         // "" means FsyncNone
	OnFull  OnFull        // "" means OnFullBlock
}

// Options are the options of Open.
type Options struct {
	// Shards is the number of shards of a new journal, 1 to MaxShards. A journal
	// with pending blocks keeps its number.
	Shards int
	Limits Limits
	// Owner is written into the journal for people who inspect it.
	Owner Owner
	// SegmentSize is the size at which a new segment begins; 0 means 32 MiB. It is
	// limited to an eighth of MaxSize, or to 64 KiB if that is more.
	SegmentSize int64
	Clock       clock.Clock
	Logger      *slog.Logger

	open    func(path string, flag int) (file, error)
	syncDir func(path string) error
}

// ErrLocked is the error of Open if the journal is already open.
var ErrLocked = errors.New("journal is in use")

// Journal is an open journal. All methods are safe for concurrent use, but only
// one goroutine at a time may read the blocks of a shard.
type Journal struct {
	dir    string
	o      Options
	lock   *os.File
	shards []*shard

	opened time.Time // when

	queueMu sync.Mutex
	queue   []*appending

	writeMu sync.Mutex // locked before mu; guards the fields below and writing to active
	next    uint64     // sequence number of the next block
	scratch []byte
	dirty   bool // written since the last sync
	parted  bool // the next segment begins behind a barrier

	mu        sync.Mutex
	limits    Limits
	segments  []*segment // ascending; the active segment is last
	active    *segment   // nil until something is appended; changed under writeMu and mu
	appended  uint64     // all blocks below are in the segments or removed
	barriers  []uint64   // ascending; the blocks from each on wait until those below are done
	size      int64      // of all segments
	pending   tally
	dropped   map[string]tally
	skipped   int64         // bytes that are not records
	unwritten error         // why the last Append failed; nil if it succeeded
	crowded   time.Time     // when dropping blocks on a full disk was last logged
	room      chan struct{} // closed and replaced when size shrinks or the limits change

	cursorFile cursorFile // used only by the goroutine that calls saveCursor
	saveErr    bool       // the last save failed
}

// Open opens the journal in dir, or creates it. The error is ErrLocked if it is
// already open, in this process or another.
func Open(dir string, o Options) (*Journal, error) {
	if o.Shards < 1 || o.Shards > MaxShards {
		return nil, fmt.Errorf("journal shards must be 1 to %d, not %d", MaxShards, o.Shards)
	}
	if o.open == nil {
		o.open = openOSFile
	}
	if o.syncDir == nil {
		o.syncDir = syncDir
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("cannot make journal: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err == nil && !inPlace(lock) {
		lock.Close()
		err = ErrLocked // by RemoveExpired, which removed the journal
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock journal %s: %w", dir, err)
	}
	j := &Journal{dir: dir, o: o, lock: lock, opened: o.Clock.Now(), limits: o.Limits, room: make(chan struct{}), dropped: map[string]tally{}}
	if err := j.load(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("cannot open journal %s: %w", dir, err)
	}
	return j, nil
}

// now returns the time for timestamps and ages of blocks: the time when the
// journal was opened plus the time that has passed since. Setting the clock
// does not change the age of any block.
func (j *Journal) now() time.Time {
	return j.opened.Round(0).Add(j.o.Clock.Now().Sub(j.opened))
}

// Dir returns the journal's directory.
func (j *Journal) Dir() string { return j.dir }

// Shards returns the number of shards. It does not change while the journal is open.
func (j *Journal) Shards() int { return len(j.shards) }

// Configure changes the limits and the stored owner.
func (j *Journal) Configure(o Owner, l Limits) error {
	j.mu.Lock()
	j.limits, j.o.Owner = l, o
	j.wakeRoom()
	j.mu.Unlock()
	return j.writeMeta()
}

// Barrier makes the blocks that are appended from now on wait until all earlier
// blocks are done. It keeps the order if the caller changes the meaning of a
// shard.
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
		j.removeSegments()
	}
}

// Run saves the cursor and enforces the limits every second, until ctx ends.
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

// Close saves the cursor and closes the journal. It must not be in use.
func (j *Journal) Close() error {
	j.writeMu.Lock()
	defer j.writeMu.Unlock()
	var errs []error
	policy := j.policy()
	if j.dirty && policy != FsyncNone {
		errs = append(errs, j.active.f.Sync())
		j.dirty = false
	}
	j.mu.Lock()
	if j.active != nil {
		j.seal()
	}
	j.removeSegments()
	cursor := j.cursor()
	j.mu.Unlock()
	errs = append(errs, j.saveCursor(cursor, policy), j.cursorFile.close(), j.lock.Close())
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

// segmentSize must be called with mu held.
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
