package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// Report describes the files of a journal at one moment.
type Report struct {
	Dir      string `json:"dir"`
	Endpoint string `json:"endpoint"`
	URL      string `json:"url"` // without secrets
	Node     string `json:"node"`

	Bytes   int64     `json:"bytes"`           // on disk
	Blocks  int64     `json:"pending_blocks"`  // not done yet
	Samples int64     `json:"pending_samples"` // in the pending blocks
	Payload int64     `json:"pending_bytes"`   // of the pending blocks
	Oldest  time.Time `json:"oldest,omitzero"` // when the oldest pending block was written
	Newest  time.Time `json:"newest,omitzero"` // when the newest block was written, pending or not

	CursorSaved time.Time       `json:"cursor_saved,omitzero"`
	Shards      []ShardReport   `json:"shards"`
	Segments    []SegmentReport `json:"segments"`
	Aside       []string        `json:"set_aside,omitempty"` // files that are kept for inspection
	Damage      []string        `json:"damage,omitempty"`    // blocks whose payload is damaged
	Problems    []string        `json:"problems,omitempty"`  // files that could not be read
}

// ShardReport is a shard's part of a Report.
type ShardReport struct {
	Next    uint64 `json:"next"` // its lowest block that is not done has this number or a higher one
	Blocks  int64  `json:"pending_blocks"`
	Samples int64  `json:"pending_samples"`
}

// SegmentReport is a segment's part of a Report.
type SegmentReport struct {
	File       string `json:"file"`
	Bytes      int64  `json:"bytes"`
	First      uint64 `json:"first"` // lowest sequence number that it may contain
	Blocks     int64  `json:"blocks"`
	Pending    int64  `json:"pending_blocks"`
	Damaged    int64  `json:"damaged_bytes,omitempty"`    // that are not blocks
	Unfinished int64  `json:"unfinished_bytes,omitempty"` // at the end of the last segment: a write that is in progress or was interrupted
}

// Inspect reads the journal in dir, which may be in use. It changes nothing and
// takes no lock. each, which may be nil, is called with every pending block, in
// the order of the segments; the payload is valid until each returns. Files
// that cannot be read are problems in the report. An error is an error of each,
// or means that dir cannot be read at all.
func Inspect(dir string, each func(Block) error) (Report, error) {
	r := Report{Dir: dir, Segments: []SegmentReport{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return r, fmt.Errorf("cannot read journal: %w", err)
	}
	m, err := parseMeta(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.problem(metaName, err)
	}
	r.Endpoint, r.URL, r.Node = m.Endpoint, m.URL, m.Node
	next, err := r.cursor(dir)
	if err != nil {
		r.problem(cursorName, err)
	}
	r.Shards = make([]ShardReport, max(m.Shards, len(next)))
	for i, n := range next {
		r.Shards[i].Next = n
	}
	var names []string
	for _, e := range entries {
		switch {
		case filepath.Ext(e.Name()) == ".seg":
			names = append(names, e.Name())
		case filepath.Ext(e.Name()) == damagedSuffix || e.Name() == "unknown" && e.IsDir():
			r.Aside = append(r.Aside, e.Name())
		}
	}
	slices.Sort(names)
	for i, name := range names {
		if err := r.segment(dir, name, i == len(names)-1, each); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Report) problem(file string, err error) {
	r.Problems = append(r.Problems, fmt.Sprintf("%s: %v", file, err))
}

// cursor returns the lowest block that is not done, by shard.
func (r *Report) cursor(dir string) (next []uint64, err error) {
	path := filepath.Join(dir, cursorName)
	b, err := files.Read(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(path); err == nil {
		r.CursorSaved = fi.ModTime()
	}
	next, _, err = parseCursor(b)
	return next, err
}

// segment adds a segment to the report. last reports whether it is the last
// one.
func (r *Report) segment(dir, name string, last bool, each func(Block) error) error {
	s := SegmentReport{File: name}
	if _, err := fmt.Sscanf(name, "%020d.seg", &s.First); err != nil {
		r.problem(name, errors.New("its name is no segment's"))
		return nil
	}
	path := filepath.Join(dir, name)
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // done in the meantime
	}
	if err != nil {
		r.problem(name, err)
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		r.problem(name, err)
		return nil
	}
	s.Bytes = fi.Size()
	_, sound, err := checkSegmentHeader(f)
	if err != nil {
		r.problem(name, err)
		return nil
	}
	r.Bytes += s.Bytes
	sc := scanner{r: f, end: s.Bytes}
	if sound {
		sc.off = segmentHeaderSize
	}
	seg := &segment{path: path, f: f}
	var buf []byte
	for seen := s.First - 1; ; {
		rec, off, ok := sc.next()
		s.Damaged += sc.skipped
		if !ok {
			break
		}
		if rec.seq <= seen {
			s.Damaged += sc.off - off // a copy
			continue
		}
		seen = rec.seq
		s.Blocks++
		if t := time.UnixMilli(rec.time); t.After(r.Newest) {
			r.Newest = t
		}
		if !r.pending(rec) {
			continue
		}
		s.Pending++
		if each == nil {
			continue
		}
		b, err := (&ref{record: rec, seg: seg, off: off}).read(buf)
		if errors.Is(err, errChecksum) {
			r.Damage = append(r.Damage, fmt.Sprintf("%s: block %d: %v", name, rec.seq, err))
			continue
		}
		if err != nil {
			r.problem(fmt.Sprintf("%s: block %d", name, rec.seq), err)
			continue
		}
		buf = b.Payload[:0]
		if err := each(b); err != nil {
			return fmt.Errorf("cannot read block %d in %s: %w", rec.seq, path, err)
		}
	}
	if sc.err != nil {
		r.problem(name, sc.err)
	}
	if last {
		s.Unfinished = sc.torn
	} else {
		s.Damaged += sc.torn
	}
	r.Segments = append(r.Segments, s)
	return nil
}

// pending counts a block if it is not done.
func (r *Report) pending(rec record) bool {
	for rec.shard >= len(r.Shards) {
		r.Shards = append(r.Shards, ShardReport{}) // the meta file was lost or is wrong
	}
	l := &r.Shards[rec.shard]
	if rec.seq < l.Next {
		return false
	}
	l.Blocks++
	l.Samples += int64(rec.samples)
	r.Blocks++
	r.Samples += int64(rec.samples)
	r.Payload += int64(rec.size)
	if t := time.UnixMilli(rec.time); r.Oldest.IsZero() || t.Before(r.Oldest) {
		r.Oldest = t
	}
	return true
}

// Find returns the journals in dir, sorted: dir itself if it is a journal, or
// the journals below it. dir may be a storage directory or the directory that
// contains all journals.
func Find(dir string) ([]string, error) {
	fi, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for journals: %w", err)
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("%s is a file: want a storage directory, or a journal's", dir)
	}
	if isJournal(dir) {
		return []string{dir}, nil
	}
	root := filepath.Join(dir, "journal")
	if _, err := os.Stat(root); err != nil {
		root = dir
	}
	dirs, err := journalDirs(root, "")
	if err != nil {
		return nil, err
	}
	dirs = slices.DeleteFunc(dirs, func(d string) bool { return !isJournal(d) })
	if len(dirs) == 0 && root == dir {
		return nil, fmt.Errorf("%s is no storage directory and no journal: there is no directory journal in it, and no segments", dir)
	}
	slices.Sort(dirs)
	return dirs, nil
}

func isJournal(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, metaName)); !errors.Is(err, fs.ErrNotExist) {
		return true // also if it cannot be read; Inspect reports that
	}
	segs, _ := filepath.Glob(filepath.Join(dir, "*.seg")) // the pattern is valid, or dir has special characters
	return len(segs) > 0
}
