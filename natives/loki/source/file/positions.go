package file

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// position is the read position of a file for one target.
type position struct {
	n        uint64
	labels   string // the key of the target
	path     string // the path of the target
	real     string // the path with symbolic links resolved
	id       identity
	head     mark  // of the first bytes of the file
	tail     mark  // of the bytes before read
	began    int64 // the offset at which reading began
	read     int64 // the end of the last range that was sent
	written  int64 // the last known time of a write to the file, Unix ns
	last     int64 // the timestamp of the last line that was sent
	finished bool  // rotated, and read to its end
	open     []span
}

// span is a range that was sent and is not done.
type span struct {
	from, to int64
	base     int64 // the timestamp of its first line
	lines    int64
}

const (
	positionsName = "positions.log"
	// compactAfter is the number of bytes by which the log grows before it is
	// replaced.
	compactAfter = 1 << 20
	// maxFinished is the maximum number of remembered rotated files per path that
	// were read to their end. They are remembered so that they are not mistaken
	// for unread files.
	maxFinished = 32
)

// positions are all positions of a component, in memory and in a log. Each change
// is a record; from time to time, the log is replaced by one that contains only
// the current state. If the log cannot be written, nothing waits for it: it is
// replaced as soon as writing works again. All methods are safe for concurrent
// use.
type positions struct {
	path    string
	problem func(error) // called with mu held if writing fails, and with nil when it works again

	ackMu sync.Mutex
	acks  []ack

	mu      sync.Mutex
	f       *os.File
	boot    string // identifies the current boot of the machine, "" if unknown
	closing bool
	all     map[uint64]*position
	index   index // of all positions
	next    uint64
	buf     []byte // records that are not written yet
	size    int64  // size of the log
	live    int64  // size of the log after the last replacement
	failing bool
	retryAt time.Time
	now     func() time.Time

	// Used while loading: the boot in which the log was written, whether its
	// writer stopped normally, the ranges in the log, and whether everything is
	// as it was at the checkpoint.
	wrote   string
	closed  bool
	rewound bool
	recent  map[uint64][]sentRange

	// Used by checkpoint.
	aging        bool   // the next checkpoint was written by the previous call
	checkpointed uint64 // hash of the last checkpoint that was written
}

type ack struct {
	p    *position
	from int64
}

// openPositions reads the log in dir and replaces it by a new one. boot
// identifies the current boot of the machine. damage is the reason why some
// positions could not be read, or nil. err is not nil if the log cannot be used
// at all.
func openPositions(dir, boot string, now func() time.Time, problem func(error)) (s *positions, found bool, damage, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, false, nil, fmt.Errorf("cannot make the directory of the positions log: %w", err)
	}
	s = &positions{path: filepath.Join(dir, positionsName), problem: problem, boot: boot, all: map[uint64]*position{}, index: newIndex(), recent: map[uint64][]sentRange{}, now: now}
	b, err := files.Read(s.path, files.MaxOwn)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, false, nil, fmt.Errorf("cannot read the positions log: %w", err)
	default:
		found = true
		if damage = s.load(b); damage != nil {
			aside := fmt.Sprintf("%s.damaged.%d", s.path, now().UnixNano())
			if err := os.WriteFile(aside, b, 0o600); err == nil {
				damage = fmt.Errorf("%w; it is kept as %s", damage, aside)
			}
		}
	}
	s.rewound, err = s.rewind()
	damage, s.recent = errors.Join(damage, err), nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		s.index.put(p)
	}
	s.replace()
	return s, found, damage, nil
}

// selectPositions returns the positions for which ok returns true, in the order
// of creation. ok must not call s.
func (s *positions) selectPositions(ok func(*position) bool) []*position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return filterPositions(slices.Collect(maps.Values(s.all)), ok)
}

// add adds p.
func (s *positions) add(p *position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	p.n = s.next
	s.all[p.n] = p
	s.index.put(p)
	s.writePosition(p)
}

// change changes p and writes it to the log.
func (s *positions) change(p *position, edit func(*position)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, id := p.path, p.id
	edit(p)
	if s.all[p.n] == p && (p.path != path || p.id != id) {
		s.index.cut(p, path, id)
		s.index.put(p)
	}
	s.writePosition(p)
}

// writePosition writes all fields of p. The caller holds mu.
func (s *positions) writePosition(p *position) {
	if s.all[p.n] != p {
		return // it was removed
	}
	s.applyDone()
	s.buf = appendPosition(s.buf, p)
	s.write()
}

// recordSent records that a range of p, which ends with tail, is about to be sent.
// written is the time of the last write to the file.
func (s *positions) recordSent(p *position, r span, tail mark, written int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyDone()
	p.open = append(p.open, r)
	p.read, p.tail, p.written = r.to, tail, max(written, 0)
	p.last = max(p.last, r.base+r.lines-1)
	if s.all[p.n] != p {
		return
	}
	s.buf = appendSent(s.buf, p.n, r, tail, p.written)
	s.write()
}

// recordHead changes the head of p. It is written with the next record.
func (s *positions) recordHead(p *position, head mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.head = head
	if s.all[p.n] == p {
		s.applyDone()
		s.buf = appendPosition(s.buf, p)
	}
}

// recordDone records that no receiver keeps lines of the range of p that begins
// at from. It does not wait for the disk.
func (s *positions) recordDone(p *position, from int64) {
	s.ackMu.Lock()
	defer s.ackMu.Unlock()
	s.acks = append(s.acks, ack{p, from})
}

// applyDone applies the calls of recordDone. The caller holds mu.
func (s *positions) applyDone() {
	s.ackMu.Lock()
	acks := s.acks
	s.acks = nil
	s.ackMu.Unlock()
	for _, a := range acks {
		i := slices.IndexFunc(a.p.open, func(r span) bool { return r.from == a.from })
		if i < 0 {
			continue
		}
		a.p.open = slices.Delete(a.p.open, i, i+1)
		if s.all[a.p.n] == a.p {
			s.buf = appendDone(s.buf, a.p.n, a.from)
		}
	}
}

// acknowledged returns the start of the first range of p that is not done.
func (s *positions) acknowledged(p *position) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyDone()
	at := p.read
	for _, r := range p.open {
		at = min(at, r.from)
	}
	return at
}

// rekey gives the positions of a path and labels other labels.
func (s *positions) rekey(path, from, to string) {
	for _, p := range s.ofPath(path, func(p *position) bool { return p.labels == from }) {
		s.change(p, func(p *position) { p.labels = to })
	}
}

// remove removes p.
func (s *positions) remove(p *position) {
	s.removeIf(p, func(*position) bool { return true })
}

// removeIf removes p if ok returns true for it. ok must not call s.
func (s *positions) removeIf(p *position, ok func(*position) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[p.n] != p || !ok(p) {
		return
	}
	delete(s.all, p.n)
	s.index.cut(p, p.path, p.id)
	s.buf = appendGone(s.buf, p.n)
	s.write()
}

// finish records that p was read to its end. If its path has too many finished
// positions, it removes the oldest.
func (s *positions) finish(p *position) {
	s.change(p, func(p *position) { p.finished = true })
	old := s.ofPath(p.path, func(q *position) bool {
		return q.finished && q.labels == p.labels && len(q.open) == 0
	})
	for len(old) > maxFinished {
		s.remove(old[0])
		old = old[1:]
	}
}

// save writes the records that are not written yet.
func (s *positions) save() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyDone()
	s.write()
}

// write writes the records in buf. The caller holds mu.
func (s *positions) write() {
	switch {
	case s.f == nil || s.size+int64(len(s.buf)) > s.live*4+compactAfter:
		s.replace()
		return
	case len(s.buf) == 0:
		return
	}
	if _, err := s.f.Write(s.buf); err != nil {
		// Part of the record may have been written. The next write creates a new
		// log.
		s.fail(fmt.Errorf("cannot write the positions log: %w", err))
		return
	}
	s.size += int64(len(s.buf))
	s.buf = s.buf[:0]
}

// replace replaces the log by one that contains only the current state. The
// caller holds mu.
func (s *positions) replace() {
	s.buf = s.buf[:0]
	if s.failing && s.now().Before(s.retryAt) {
		return
	}
	if err := s.tryReplace(); err != nil {
		s.fail(fmt.Errorf("cannot write the positions log: %w", err))
		return
	}
	if s.failing {
		s.failing = false
		s.problem(nil)
	}
}

// state returns a log with the current state. The caller holds mu.
func (s *positions) state() []byte {
	b := appendBoot(appendHeader(nil), s.boot, s.closing)
	for _, n := range slices.Sorted(maps.Keys(s.all)) {
		b = appendPosition(b, s.all[n])
	}
	return b
}

func (s *positions) tryReplace() error {
	b := s.state()
	tmp := s.path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close(), os.Remove(tmp))
	}
	// Windows cannot replace an open file.
	if err := errors.Join(f.Close(), s.closeFile(), os.Rename(tmp, s.path)); err != nil {
		return err
	}
	if s.f, err = os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	s.size, s.live = int64(len(b)), int64(len(b))
	return nil
}

// fail records that the log is invalid. The caller holds mu.
func (s *positions) fail(err error) {
	_ = s.closeFile() // the next write creates a new log
	s.failing, s.retryAt = true, s.now().Add(time.Second)
	s.buf = s.buf[:0]
	s.problem(err)
}

func (s *positions) closeFile() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return f.Close()
}

// close writes the remaining records and closes the log.
func (s *positions) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applyDone()
	s.retryAt = time.Time{}
	s.closing = true
	s.buf = appendBoot(s.buf, s.boot, true)
	s.write()
	if s.f == nil {
		return errors.New("the positions log could not be written: what was sent last is sent again")
	}
	return s.closeFile()
}
