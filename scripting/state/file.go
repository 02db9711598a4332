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
// of the payload u32, its CRC32C u32, CRC32C of these two u32, payload.
// Integers are little endian. A payload begins with its type:
//
//	'M'  description of the file, JSON (meta); the first record
//	'C'  changes: operations up to its end, which are applied together
//	'S'  empty; the records before it contain the state when the file was begun,
//	     so a file without it is unfinished and is ignored
//
// An operation is a collection's number in meta (uvarint), then 'c' for clear,
// 'd' key for a deleted key, or 'p' key, kind of value, bits, data, written,
// seq. Strings are preceded by their length. Numbers are varints.
const (
	fileMagic   = "WEIRSTA\n"
	fileVersion = 1
	headerSize  = 12
	recordHead  = 12
	// maxRecord limits the memory that a damaged length can make a reader
	// allocate. It is larger than a good record plus the largest value, which may
	// follow it.
	maxRecord = 64 << 20
	// goodRecord is the approximate length at which a record of many changes ends.
	goodRecord = 1 << 20

	recMeta    = 'M'
	recChanges = 'C'
	recStarted = 'S'

	opClear  = 'c'
	opDelete = 'd'
	opPut    = 'p'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// meta is the description in a file.
type meta struct {
	Node    string    `json:"node"`
	Version int64     `json:"version"` // of the script's definition
	Begun   time.Time `json:"begun"`
	Decls   []Decl    `json:"state"`
}

func appendHeader(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, fileMagic...), fileVersion)
}

// beginRecord appends the header of a record. endRecord must follow; it
// completes the header.
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

// image is the content of a file.
type image struct {
	meta
	entries []map[string]Entry // by index of the declaration
	end     int64              // of the last valid record
	torn    bool               // an unfinished record follows end
	// damaged describes the damage after end, or is nil. The records before end
	// are valid.
	damaged error
	started bool // the initial state of the file is complete
}

// notOursError is the error for files that are not state files.
type notOursError struct{ msg string }

func (e *notOursError) Error() string { return e.msg }

// readImage reads a state file. The error is r's, or a *notOursError.
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

// record reads one record of at most left bytes. ok is false if there is no
// valid record.
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
	case head == [recordHead]byte{}: // a file whose length was written before its content
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
		if size == left { // the last one: the machine lost power while writing it
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

// collections returns the stored collections.
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
			c.allDirty = false // it equals the content of the disk
		}
		cols[i] = c
	}
	return cols
}

// fill inserts entries, which are ordered by write and do not exist yet.
func (c *Collection) fill(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		c.t.insert(e.Key, e.Value, e.Written)
		if e.seq > 0 { // kept, because it is the key in a queue
			c.t.entryAt(c.t.ends[byWrite].prev).seq = e.seq
			c.t.seq = max(c.t.seq, e.seq)
		}
	}
}

// decoder reads the output of the append functions. After an error, it returns
// zero values.
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
