package state

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"
)

// A state file is a header, "WEIRSTA\n" and a version u32, and records: length
// of the payload u32, its CRC32C u32, CRC32C of these two u32, payload. Little
// endian. A payload begins with what it is:
//
//	'M'  what the file is about, JSON (meta); the first record
//	'C'  changes: operations until its end, all of them or none
//	'S'  nothing; before it stood the state as it was when the file was begun,
//	     so a file without one was not finished and does not count
//
// An operation is a collection's number in meta (uvarint), then 'c' for clear,
// 'd' key for a key that is gone, or 'p' key, kind of value, bits, data,
// written, seq. Strings have their length before them, numbers are varints.
const (
	fileMagic   = "WEIRSTA\n"
	fileVersion = 1
	headerSize  = 12
	recordHead  = 12
	// maxRecord bounds what a damaged length can make a reader take: more than a
	// good record and the largest value, which may follow it.
	maxRecord = 64 << 20
	// goodRecord is about how long records of many changes are made.
	goodRecord = 1 << 20

	recMeta    = 'M'
	recChanges = 'C'
	recStarted = 'S'

	opClear  = 'c'
	opDelete = 'd'
	opPut    = 'p'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// meta is what a file says of itself.
type meta struct {
	Node    string    `json:"node"`
	Version int64     `json:"version"` // of the script's definition
	Begun   time.Time `json:"begun"`
	Decls   []Decl    `json:"state"`
}

func appendHeader(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, fileMagic...), fileVersion)
}

// beginRecord appends the head of a record of a kind; endRecord, which must
// follow, fills it in.
func beginRecord(dst []byte, kind byte) (_ []byte, at int) {
	at = len(dst)
	dst = append(dst, make([]byte, recordHead)...)
	return append(dst, kind), at
}

func endRecord(dst []byte, at int) []byte {
	payload := dst[at+recordHead:]
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(dst[at+4:], crc32.Checksum(payload, castagnoli))
	binary.LittleEndian.PutUint32(dst[at+8:], crc32.Checksum(dst[at:at+8], castagnoli))
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendPut(dst []byte, number int, e *entry) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(number)), opPut)
	dst = append(appendText(dst, e.key), byte(e.val.Kind))
	dst = binary.AppendUvarint(dst, e.val.Bits)
	dst = appendText(dst, e.val.Data)
	dst = binary.AppendVarint(dst, e.written)
	return binary.AppendUvarint(dst, e.seq)
}

// image is what a file holds.
type image struct {
	meta
	entries []map[string]Entry // by number of the declaration
	end     int64              // of the last sound record
	torn    bool               // after end is a record that was not finished
	// damaged says what is wrong with what is after end, nil for nothing. What
	// is before it counts.
	damaged error
	started bool // the state that the file was begun with is all there
}

// notOursError is that of files that cannot be read at all.
type notOursError struct{ msg string }

func (e *notOursError) Error() string { return e.msg }

// readImage reads a state file. An error is r's, or a *notOursError.
func readImage(r io.Reader, size int64) (*image, error) {
	br := bufio.NewReaderSize(r, 1<<20)
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(br, head); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &image{torn: true}, nil
		}
		return nil, err
	}
	if string(head[:8]) != fileMagic {
		return nil, &notOursError{"it is no state file"}
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != fileVersion {
		return nil, &notOursError{fmt.Sprintf("its format is version %d, and this weir knows version %d", v, fileVersion)}
	}
	im := &image{end: headerSize}
	for im.end < size {
		n, ok, err := im.record(br, size-im.end)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		im.end += n
	}
	return im, nil
}

// record reads one record of at most left bytes; ok is false when there is no
// sound one.
func (im *image) record(r io.Reader, left int64) (size int64, ok bool, err error) {
	var head [recordHead]byte
	if left < recordHead {
		im.torn = true
		return 0, false, nil
	}
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, false, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	size = recordHead + n
	switch {
	case head == [recordHead]byte{}: // a file that became longer before its content came to the disk
		im.torn = true
		return 0, false, nil
	case crc32.Checksum(head[:8], castagnoli) != binary.LittleEndian.Uint32(head[8:]), n == 0, n > maxRecord:
		im.damaged = fmt.Errorf("at byte %d begins no record", im.end)
		return 0, false, nil
	case size > left:
		im.torn = true
		return 0, false, nil
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, false, err
	}
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		if size == left { // the last one: a machine that lost power wrote a part of it
			im.torn = true
			return 0, false, nil
		}
		im.damaged = fmt.Errorf("a record at byte %d has a wrong checksum", im.end)
		return 0, false, nil
	}
	if err := im.apply(payload); err != nil {
		im.damaged = fmt.Errorf("a record at byte %d cannot be read: %w", im.end, err)
		return 0, false, nil
	}
	return size, true, nil
}

func (im *image) apply(payload []byte) error {
	switch kind := payload[0]; kind {
	case recMeta:
		if im.entries != nil {
			return errors.New("it says a second time what the file is about")
		}
		if err := json.Unmarshal(payload[1:], &im.meta); err != nil {
			return err
		}
		im.entries = make([]map[string]Entry, len(im.Decls))
		for i := range im.entries {
			im.entries[i] = map[string]Entry{}
		}
		return nil
	case recStarted:
		im.started = im.entries != nil
		return nil
	case recChanges:
		d := decoder{b: payload[1:]}
		for len(d.b) > 0 && d.err == nil {
			im.change(&d)
		}
		return d.err
	default:
		return fmt.Errorf("there is no record %q", kind)
	}
}

// change applies one operation.
func (im *image) change(d *decoder) {
	n := d.uvarint()
	if d.err == nil && n >= uint64(len(im.entries)) {
		d.err = fmt.Errorf("there is no collection %d", n)
	}
	op := d.byte()
	if d.err != nil {
		return
	}
	m := im.entries[n]
	switch op {
	case opClear:
		clear(m)
	case opDelete:
		delete(m, d.text())
	case opPut:
		e := Entry{Key: d.text(), Value: Value{Kind: ValueKind(d.byte())}}
		e.Value.Bits, e.Value.Data = d.uvarint(), d.text()
		e.Written, e.seq = d.varint(), d.uvarint()
		if e.Value.Kind == None || e.Value.Kind > Composite {
			d.err = fmt.Errorf("there is no kind of value %d", e.Value.Kind)
		}
		if d.err == nil {
			m[e.Key] = e
		}
	default:
		d.err = fmt.Errorf("there is no operation %q", op)
	}
}

// collections returns the collections as they were.
func (im *image) collections() []*Collection {
	cols := make([]*Collection, len(im.Decls))
	for i, d := range im.Decls {
		c := newCollection(d)
		entries := make([]Entry, 0, len(im.entries[i]))
		for _, e := range im.entries[i] {
			entries = append(entries, e)
		}
		slices.SortFunc(entries, func(a, b Entry) int { return int(int64(a.seq - b.seq)) })
		c.fill(entries)
		if c.dirty != nil {
			c.allDirty = false // it is what the disk has
		}
		cols[i] = c
	}
	return cols
}

// fill inserts entries that are in order of their writes and not there yet.
func (c *Collection) fill(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		c.t.insert(e.Key, e.Value, e.Written)
		if e.seq > 0 { // kept, as it is a queue's key
			c.t.entryAt(c.t.ends[byWrite].prev).seq = e.seq
			c.t.seq = max(c.t.seq, e.seq)
		}
	}
}

// decoder reads what the append functions wrote. After an error all is zero.
type decoder struct {
	b   []byte
	err error
}

var errShort = errors.New("it breaks off")

func (d *decoder) byte() byte {
	if d.err != nil || len(d.b) == 0 {
		d.err = errShort
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.err != nil || n <= 0 {
		d.err = errShort
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if d.err != nil || n <= 0 {
		d.err = errShort
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) text() string {
	n := d.uvarint()
	if d.err != nil || n > uint64(len(d.b)) {
		d.err = errShort
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
