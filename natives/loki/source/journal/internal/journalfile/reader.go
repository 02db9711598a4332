package journalfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Root is a directory of journals: files, and subdirectories named after a
// machine ID.
type Root struct {
	Path    string
	Machine string // the only subdirectory to read; "" reads those of all machines
	// Volatile is true for the directory whose entries journald copies to another
	// root when it can write there. Entries and their copies are read only once.
	Volatile bool
}

// Options configure a Reader.
type Options struct {
	Roots    []Root
	Position []Cursor // the last entry that was read of each sequence
	// Foreign is the position of a program that stores only one cursor, such as
	// Promtail. It is used for sequences that are not in Position.
	Foreign *Cursor
	Since   time.Time // earlier entries are skipped; zero means no limit
	Now     func() time.Time
}

// Entry is an entry of the journal.
type Entry struct {
	Cursor Cursor
	Fields []Field // valid until the next call of Next; a name may occur twice
}

// Loss is data that a Reader could not read.
type Loss struct {
	Path    string // of the file, if known
	Reason  string // LossDamaged or LossDeleted
	Entries uint64 // 0 if an entry lacks a field, or if the number is unknown
	Detail  string
}

// Reasons of losses.
const (
	LossDamaged = "damaged" // the content of a file violates the format
	LossDeleted = "deleted" // entries were deleted from the journal before they were read
)

// Reader reads all files of its roots as one journal. It must not be used
// concurrently.
type Reader struct {
	o       Options
	at      map[ID]Cursor // the last entry that was read of each sequence
	foreign *Cursor
	since   uint64
	wanted  map[ID]Cursor // positions whose next entry has not been found yet
	lowest  map[ID]uint64 // the lowest number in files that begin after the position
	latest  ID            // the sequence of the latest position

	scan   scan
	files  []*file
	ended  []ended // files that were read and are not written to any more
	bounds map[ID]uint64
	losses []Loss
	fields []Field
	ready  bool // a round has found entries that may be read
}

// ended is a file that is ignored as long as its name exists.
type ended struct {
	path string
	info os.FileInfo
}

// NewReader returns a Reader. It opens nothing: directories and files may be
// created later.
func NewReader(o Options) *Reader {
	r := &Reader{o: o, at: map[ID]Cursor{}, wanted: map[ID]Cursor{}, lowest: map[ID]uint64{}, foreign: o.Foreign, bounds: map[ID]uint64{}}
	if !o.Since.IsZero() {
		r.since = uint64(max(0, o.Since.UnixMicro()))
	}
	for _, c := range o.Position {
		if latest := r.at[r.latest]; c.Realtime >= latest.Realtime {
			r.latest = c.SeqnumID
		}
		r.at[c.SeqnumID] = c
		if c.Realtime >= r.since {
			r.wanted[c.SeqnumID] = c
		}
	}
	r.scan.failed = map[string]error{}
	return r
}

// Next returns the next entry, which is valid until the next call, or nil if
// there is currently none. Errors come from the operating system and may be
// temporary: call Next again later; no entry is skipped.
func (r *Reader) Next() (*Entry, error) {
	for {
		f, err := r.first()
		if err != nil {
			return nil, err
		}
		if f == nil {
			if r.ready { // all entries that the last round found were read
				r.ready = false
				return nil, nil
			}
			found, err := r.round()
			if err != nil {
				return nil, err
			}
			if !found {
				return nil, nil
			}
			r.ready = true
			continue
		}
		r.ready = false
		c := f.head.cursor
		copied, err := r.copied(f, c)
		if err != nil {
			return nil, fmt.Errorf("%w (%s)", err, f.path)
		}
		if copied {
			f.next++
			f.head = nil
			continue
		}
		var damaged int
		r.fields, damaged, err = f.fields(r.fields[:0], f.head)
		if err != nil && !isDamage(err) {
			return nil, fmt.Errorf("%w (%s)", err, f.path)
		}
		f.next++
		f.head = nil
		r.at[c.SeqnumID] = c
		if err != nil {
			r.damaged(f.path, 1, err.Error())
			continue
		}
		if damaged > 0 {
			r.damaged(f.path, 0, "a field could not be read")
		}
		return &Entry{c, r.fields}, nil
	}
}

// first returns the file with the next entry, or nil.
func (r *Reader) first() (*file, error) {
	var best *file
	for _, f := range r.files {
		if err := r.loadHead(f); err != nil {
			return nil, err
		}
		if f.head == nil || f.head.cursor.Seqnum > r.bounds[f.h.seqnum] {
			continue
		}
		if best == nil || isBefore(f.head.cursor, best.head.cursor) {
			best = f
		}
	}
	return best, nil
}

// loadHead loads the next entry of a file and skips damaged ones.
func (r *Reader) loadHead(f *file) error {
	for f.head == nil && f.next < f.h.entries {
		err := f.load(f.next, &f.spare)
		switch {
		case err == nil:
			f.head = &f.spare
		case !isDamage(err):
			return fmt.Errorf("%w (%s)", err, f.path)
		case f.chainEnds(f.next):
			r.damaged(f.path, f.unread(), err.Error())
			f.next = f.h.entries
		default:
			r.damaged(f.path, 1, err.Error())
			f.next++
		}
	}
	return nil
}

func (r *Reader) damaged(path string, n uint64, detail string) {
	if k := len(r.losses) - 1; k >= 0 && n > 0 && r.losses[k].Entries > 0 && r.losses[k].Path == path && r.losses[k].Reason == LossDamaged {
		r.losses[k].Entries += n
		return
	}
	r.losses = append(r.losses, Loss{path, LossDamaged, n, detail})
}

func (r *Reader) deleted(path string, n uint64, detail string) {
	r.losses = append(r.losses, Loss{path, LossDeleted, n, detail})
}

// Losses returns the losses since the last call.
func (r *Reader) Losses() []Loss {
	l := r.losses
	r.losses = nil
	return l
}

// round searches for new entries, and reports whether there may be any.
//
// A sequence is read up to bounds, the highest number that existed before its
// files were refreshed. All entries with lower numbers were written earlier, so
// they are visible after the refresh, whichever file contains them. Without this
// limit, an entry could be returned before one with a lower number in another
// file, and a position after it would skip that one.
func (r *Reader) round() (bool, error) {
	now := r.o.Now()
	if err := r.refresh(now); err != nil {
		return false, err
	}
	r.setBounds()
	added, err := r.rescan(now)
	if err != nil {
		return false, err
	}
	if err := r.refresh(now); err != nil {
		return false, err
	}
	if added { // their limits are not known yet
		r.setBounds()
		if err := r.refresh(now); err != nil {
			return false, err
		}
	}
	r.findGaps()
	r.retire(now)
	return slices.ContainsFunc(r.files, func(f *file) bool { return f.unread() > 0 }), nil
}

func (r *Reader) setBounds() {
	for _, f := range r.files {
		r.bounds[f.h.seqnum] = max(r.bounds[f.h.seqnum], f.h.tailSeqnum)
	}
}

// refresh reads the headers of the files that are still written to.
func (r *Reader) refresh(now time.Time) error {
	var errs []error
	r.files = slices.DeleteFunc(r.files, func(f *file) bool {
		if f.archived() {
			return false
		}
		replaced, err := f.refresh(now)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w (%s)", err, f.path))
		}
		if replaced {
			r.damaged(f.path, f.unread(), "the file was overwritten")
			_ = f.close()
			r.scan.force()
		}
		return replaced
	})
	return errors.Join(errs...)
}

// lookForNext checks whether a file begins before the entry that follows a
// position. Entries have consecutive numbers, so the entries between are known.
func (r *Reader) lookForNext(f *file) {
	c, ok := r.wanted[f.h.seqnum]
	if !ok || f.h.entries == 0 {
		return
	}
	if f.h.headSeqnum <= c.Seqnum+1 {
		delete(r.wanted, f.h.seqnum)
	} else if lowest, ok := r.lowest[f.h.seqnum]; !ok || f.h.headSeqnum < lowest {
		r.lowest[f.h.seqnum] = f.h.headSeqnum
	}
}

// findGaps reports positions whose following entries were deleted.
func (r *Reader) findGaps() {
	for id, c := range r.wanted {
		lowest, ok := r.lowest[id]
		switch {
		case ok:
			r.deleted("", lowest-c.Seqnum-1, "the entries after the last position were deleted from the journal; reading goes on with the next one")
		case id == r.latest && r.Found():
			r.deleted("", 0, "the journal of the last position no longer exists; reading goes on with the journals that do")
		default: // the files may still appear; those of an old sequence are deleted eventually
			continue
		}
		delete(r.wanted, id)
	}
}

// How long a deleted file is read that journald has not closed, how long a file
// is kept to recognise copies of its entries, and how much disk space deleted
// files may occupy.
const (
	deletedIdle   = 10 * time.Minute
	deletedCopied = time.Minute
	deletedSize   = 1 << 30
)

// retire closes the files that were read and are not written to any more.
func (r *Reader) retire(now time.Time) {
	var held int64
	slices.SortStableFunc(r.files, func(a, b *file) int { return cmp.Compare(b.h.tailRealtime, a.h.tailRealtime) })
	r.files = slices.DeleteFunc(r.files, func(f *file) bool {
		if f.deleted && f.unread() > 0 {
			if held += f.info.Size(); held > deletedSize {
				r.deleted(f.path, f.unread(), "the file was deleted before it could be read")
				f.next = f.h.entries
			}
		}
		if f.unread() > 0 {
			return false
		}
		over := f.archived() || f.deleted && (f.h.state == stateOffline || now.Sub(f.changed) > deletedIdle)
		if !over || f.volatile && now.Sub(f.seen) < deletedCopied {
			f.idle(now)
			return false
		}
		r.end(f)
		return true
	})
}

// end closes a file that was read.
func (r *Reader) end(f *file) {
	if !f.deleted {
		r.ended = append(r.ended, ended{f.path, f.info})
	}
	_ = f.close()
}

// idle releases the memory of a file that is seldom written to.
func (f *file) idle(now time.Time) {
	if now.Sub(f.changed) > time.Minute {
		f.windows.free()
		clear(f.kept)
	}
}

// Open returns the number of open files.
func (r *Reader) Open() int { return len(r.files) }

// Close closes all files.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.close())
	}
	r.files = nil
	return errors.Join(errs...)
}
