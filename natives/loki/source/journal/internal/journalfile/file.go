package journalfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// Field is a field of an entry. Its value may be binary.
type Field struct{ Name, Value string }

// Fields that have the same value in several entries are cached: up to maxKept
// fields of up to maxKeptSize bytes in each file.
const (
	maxKept     = 4096
	maxKeptSize = 512
)

// file is an open journal file.
type file struct {
	path     string
	info     os.FileInfo
	f        *os.File
	volatile bool // in a volatile root
	deleted  bool
	seen     time.Time // when its name last existed
	changed  time.Time // when the header last changed

	h      header
	next   uint64 // index of the next entry
	head   *entry // the entry at next; nil if it is not loaded
	spare  entry
	arrays []array // the known entry arrays, in order

	windows windows
	kept    map[uint64]Field // by the offset of the data object
	items   []uint64
	unpack  decompressor
}

// entry is an entry object without its fields.
type entry struct {
	cursor Cursor
	at     uint64
	size   uint64
}

// array is an entry array.
type array struct {
	at, first, n uint64 // offset; index of its first entry; number of entries
}

// copyIdle is how long a file that is too short must be unchanged before it
// counts as damaged.
const copyIdle = 10 * time.Second

// openFile opens a file and reads its header.
func openFile(path string, now time.Time) (*file, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	x := &file{path: path, f: f, windows: windows{f: f}, kept: map[uint64]Field{}, changed: now, seen: now}
	if x.info, err = f.Stat(); err == nil {
		x.h, err = x.readHeader()
	}
	if err == nil && x.h.size+x.h.arena > uint64(x.info.Size()) && now.Sub(x.info.ModTime()) < copyIdle {
		err = errShort // if it does not change any more, it is damaged
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return x, nil
}

func (f *file) close() error {
	f.unpack.close()
	return f.f.Close()
}

func (f *file) readHeader() (header, error) {
	var b [headerSize]byte
	n, err := f.f.ReadAt(b[:], 0)
	if n < headerSize && !errors.Is(err, io.EOF) {
		return header{}, fmt.Errorf("cannot read journal file: %w", err)
	}
	h, err := parseHeader(b[:n])
	if err == nil && h.entries > uint64(f.info.Size())/entrySize { // the file has grown, or the header is damaged
		info, err := f.f.Stat()
		if err != nil {
			return h, fmt.Errorf("cannot read journal file: %w", err)
		}
		f.info = info
		if h.entries > uint64(info.Size())/entrySize {
			return h, &damage{fmt.Sprintf("the header counts %d entries in a file of %d bytes", h.entries, info.Size())}
		}
	}
	return h, err
}

// refresh reads the header again. It reports whether the file is now a different
// one: journald never replaces the content of a file.
func (f *file) refresh(now time.Time) (replaced bool, err error) {
	h, err := f.readHeader()
	if isDamage(err) || err == nil && (h.file != f.h.file || h.entries < f.h.entries) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if h.entries != f.h.entries {
		f.windows.forget()
	}
	if h != f.h {
		f.h, f.changed = h, now
	}
	return false, nil
}

// unread returns the number of unread entries.
func (f *file) unread() uint64 { return f.h.entries - min(f.next, f.h.entries) }

// object returns the type-specific size and the first need bytes of an object.
// They are valid until the next read.
func (f *file) object(at uint64, kind byte, need uint64) (size uint64, b []byte, err error) {
	if at < f.h.size || at%8 != 0 {
		return 0, nil, &damage{fmt.Sprintf("no object can be at offset %d", at)}
	}
	if b, err = f.windows.read(at, need); err != nil {
		return 0, nil, err
	}
	size = binary.LittleEndian.Uint64(b[8:])
	if b[0] != kind || size < need {
		return 0, nil, &damage{fmt.Sprintf("the object at offset %d has type %d and %d bytes, want type %d and at least %d bytes", at, b[0], size, kind, need)}
	}
	return size, b, nil
}

// itemSize returns the size of an item of an entry array.
func (f *file) itemSize() uint64 {
	if f.h.incompatible&flagCompact != 0 {
		return 4
	}
	return 8
}

func offset(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// entryAt returns the offset of an entry by its index.
func (f *file) entryAt(i uint64) (uint64, error) {
	for len(f.arrays) == 0 || i >= f.arrays[len(f.arrays)-1].first+f.arrays[len(f.arrays)-1].n {
		if err := f.loadArray(); err != nil {
			return 0, err
		}
	}
	k := len(f.arrays) - 1
	for i < f.arrays[k].first {
		k--
	}
	a := f.arrays[k]
	b, err := f.windows.read(a.at+entryArraySize+(i-a.first)*f.itemSize(), f.itemSize())
	if err != nil {
		return 0, err
	}
	return offset(b), nil
}

// loadArray adds the next entry array to the known ones.
func (f *file) loadArray() error {
	at, first, after := f.h.entryArray, uint64(0), uint64(0)
	if n := len(f.arrays); n > 0 {
		last := f.arrays[n-1]
		_, b, err := f.object(last.at, typeEntryArray, entryArraySize)
		if err != nil {
			return err
		}
		at, first, after = binary.LittleEndian.Uint64(b[16:]), last.first+last.n, last.at
	}
	if at <= after { // arrays are appended, so a chain that goes back contains a loop
		return &damage{fmt.Sprintf("the chain of entry arrays ends after %d of %d entries", first, f.h.entries)}
	}
	size, _, err := f.object(at, typeEntryArray, entryArraySize+f.itemSize())
	if err != nil {
		return err
	}
	f.arrays = append(f.arrays, array{at, first, (size - entryArraySize) / f.itemSize()})
	return nil
}

// load reads the entry at an index.
func (f *file) load(i uint64, e *entry) error {
	at, err := f.entryAt(i)
	if err != nil {
		return err
	}
	size, b, err := f.object(at, typeEntry, entrySize)
	if err != nil {
		return err
	}
	*e = entry{cursorOf(f.h.seqnum, b), at, size}
	if n := e.cursor.Seqnum; n < f.h.headSeqnum || n > f.h.tailSeqnum {
		return &damage{fmt.Sprintf("the entry at offset %d has number %d, and the file those from %d to %d", at, n, f.h.headSeqnum, f.h.tailSeqnum)}
	}
	return nil
}

// chainEnds reports whether damage makes all entries from an index on unreadable.
func (f *file) chainEnds(i uint64) bool {
	_, err := f.entryAt(i)
	return isDamage(err)
}

// fields appends the fields of e to dst. damaged is the number of fields that
// could not be read.
func (f *file) fields(dst []Field, e *entry) (_ []Field, damaged int, err error) {
	if e.size > maxEntry {
		return dst, 0, &damage{fmt.Sprintf("the entry at offset %d has %d bytes", e.at, e.size)}
	}
	b, err := f.windows.read(e.at, e.size)
	if err != nil {
		return dst, 0, err
	}
	step, width := uint64(16), uint64(8)
	if f.h.incompatible&flagCompact != 0 {
		step, width = 4, 4
	}
	f.items = f.items[:0]
	for i := uint64(entrySize); i+step <= e.size; i += step {
		if at := offset(b[i : i+width]); at != 0 { // compact entries may be padded
			f.items = append(f.items, at)
		}
	}
	for _, at := range f.items {
		x, ok := f.kept[at]
		if !ok {
			if x, err = f.field(at); isDamage(err) {
				damaged++
				continue
			} else if err != nil {
				return dst, damaged, err
			}
		}
		dst = append(dst, x)
	}
	return dst, damaged, nil
}

// field reads a data object.
func (f *file) field(at uint64) (Field, error) {
	start := uint64(dataSize)
	if f.h.incompatible&flagCompact != 0 {
		start = dataSizeCompact
	}
	size, b, err := f.object(at, typeData, start)
	if err != nil {
		return Field{}, err
	}
	flags, users := b[1], binary.LittleEndian.Uint64(b[56:])
	payload, err := f.windows.read(at, min(size, start+maxValue))
	if err != nil {
		return Field{}, err
	}
	payload = payload[start:]
	if flags != 0 {
		if payload, err = f.unpack.decompress(flags, payload); err != nil {
			return Field{}, err
		}
	}
	name := bytes.IndexByte(payload, '=')
	if name < 1 {
		return Field{}, &damage{fmt.Sprintf("the data object at offset %d has no field name", at)}
	}
	s := string(payload)
	x := Field{s[:name], s[name+1:]}
	if users > 1 && len(s) <= maxKeptSize {
		if len(f.kept) >= maxKept {
			clear(f.kept)
		}
		f.kept[at] = x
	}
	return x, nil
}

// search returns the index of the first entry for which after returns true. after
// must be monotonic. For a damaged entry, the next readable one is used.
func (f *file) search(after func(c Cursor) bool) (uint64, error) {
	var e entry
	low, high := uint64(0), f.h.entries
	for low < high {
		middle := low + (high-low)/2
		i, found := middle, false
		for ; i < high && !found; i++ {
			err := f.load(i, &e)
			if err != nil && !isDamage(err) {
				return 0, err
			}
			if err != nil && f.chainEnds(i) {
				break
			}
			found = err == nil
		}
		if !found || after(e.cursor) {
			high = middle
		} else {
			low = i
		}
	}
	return low, nil
}

// archived reports whether the file is not written to any more.
func (f *file) archived() bool { return f.h.state == stateArchived || strings.HasSuffix(f.path, "~") }
