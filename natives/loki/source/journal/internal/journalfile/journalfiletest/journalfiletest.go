// Package journalfiletest writes journal files as journald does, entry by entry,
// for tests that read them at the same time. It is not for production: hash
// tables are omitted, so journalctl can read the files but not search them.
package journalfiletest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

const headerSize = 272

// Writer writes one journal file.
type Writer struct {
	t       testing.TB
	f       *os.File
	path    string
	compact bool
	seqnum  journalfile.ID
	end     int64 // offset of the next object
	data    map[string]int64
	array   int64 // the current entry array
	pack    func(string) []byte
	flag    byte // flag of compressed objects
	used, n uint64
	entries uint64
	objects uint64
}

// Create creates a file of the sequence id.
func Create(t testing.TB, path string, id journalfile.ID, compact bool) *Writer {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	w := &Writer{t: t, f: f, path: path, compact: compact, seqnum: id, end: headerSize, data: map[string]int64{}}
	var h [headerSize]byte
	copy(h[:], "LPKSHHRH")
	if compact {
		h[12] = 1 << 4
	}
	h[16] = 1
	info, _ := f.Stat()
	binary.LittleEndian.PutUint64(h[24:], uint64(info.ModTime().UnixNano()))
	copy(h[32:], filepath.Base(path))
	copy(h[72:], id[:])
	binary.LittleEndian.PutUint64(h[88:], headerSize)
	w.write(h[:], 0)
	return w
}

// Compress compresses the fields of later entries as systemd does. kind is "xz",
// "lz4" or "zstd".
func (w *Writer) Compress(kind string) {
	w.t.Helper()
	check := func(errs ...error) {
		w.t.Helper()
		if err := errors.Join(errs...); err != nil {
			w.t.Fatal(err)
		}
	}
	switch kind {
	case "xz":
		w.flag = 1
		w.pack = func(s string) []byte {
			var b bytes.Buffer
			z, err := xz.NewWriter(&b)
			check(err)
			_, err = io.WriteString(z, s)
			check(err, z.Close())
			return b.Bytes()
		}
	case "lz4":
		w.flag = 2
		w.pack = func(s string) []byte {
			b := make([]byte, 8+lz4.CompressBlockBound(len(s)))
			binary.LittleEndian.PutUint64(b, uint64(len(s)))
			n, err := lz4.CompressBlock([]byte(s), b[8:], nil)
			check(err)
			return b[:8+n]
		}
	case "zstd":
		w.flag = 4
		w.pack = func(s string) []byte {
			z, err := zstd.NewWriter(nil)
			check(err)
			return z.EncodeAll([]byte(s), nil)
		}
	default:
		w.t.Fatalf("unknown compression %q", kind)
	}
	var b [1]byte
	if _, err := w.f.ReadAt(b[:], 12); err != nil {
		w.t.Fatal(err)
	}
	w.write([]byte{b[0] | map[byte]byte{1: 1, 2: 2, 4: 8}[w.flag]}, 12)
}

func (w *Writer) write(b []byte, at int64) {
	w.t.Helper()
	if _, err := w.f.WriteAt(b, at); err != nil {
		w.t.Fatal(err)
	}
}

func (w *Writer) put(v uint64, at int64) {
	w.t.Helper()
	w.write(binary.LittleEndian.AppendUint64(nil, v), at)
}

// object appends an object and returns its offset.
func (w *Writer) object(kind byte, body []byte) int64 {
	w.t.Helper()
	at := w.end
	w.put(uint64(at), 136) // tail object
	w.objects++
	w.put(w.objects, 144)
	b := make([]byte, 16, 16+len(body))
	b[0] = kind
	binary.LittleEndian.PutUint64(b[8:], uint64(16+len(body)))
	b = append(b, body...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	w.write(b, at)
	w.end = at + int64(len(b))
	return at
}

// Append writes an entry. It sets c.SeqnumID and, if it is 0, c.XorHash.
func (w *Writer) Append(c journalfile.Cursor, fields ...string) journalfile.Cursor {
	w.t.Helper()
	c.SeqnumID = w.seqnum
	h := fnv.New64a()
	var items []int64
	for _, x := range fields {
		_, _ = h.Write([]byte(x))
		at, ok := w.data[x]
		if !ok {
			fixed := 48
			if w.compact {
				fixed = 56
			}
			payload := []byte(x)
			if w.pack != nil {
				payload = w.pack(x)
			}
			at = w.object(1, append(make([]byte, fixed), payload...))
			if w.pack != nil {
				w.write([]byte{w.flag}, at+1)
			}
			w.data[x] = at
			w.put(1, at+56)
		} else {
			w.put(2, at+56)
		}
		items = append(items, at)
	}
	if c.XorHash == 0 {
		c.XorHash = h.Sum64()
	}
	b := binary.LittleEndian.AppendUint64(nil, c.Seqnum)
	b = binary.LittleEndian.AppendUint64(b, c.Realtime)
	b = binary.LittleEndian.AppendUint64(b, c.Monotonic)
	b = append(b, c.BootID[:]...)
	b = binary.LittleEndian.AppendUint64(b, c.XorHash)
	for _, at := range items {
		b = w.item(b, at)
		if !w.compact {
			b = append(b, make([]byte, 8)...)
		}
	}
	w.put(c.Seqnum, 160) // journald sets it before the entry exists
	entry := w.object(3, b)
	for _, at := range items {
		w.put(uint64(entry), at+40)
	}
	w.link(entry)
	if w.entries == 1 {
		w.put(c.Seqnum, 168)
		w.put(c.Realtime, 184)
	}
	w.put(c.Realtime, 192)
	w.put(c.Monotonic, 200)
	w.put(uint64(w.end-headerSize), 96)
	w.put(w.entries, 152)
	return c
}

func (w *Writer) item(b []byte, at int64) []byte {
	if w.compact {
		return binary.LittleEndian.AppendUint32(b, uint32(at))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(at))
}

// link adds an entry to the arrays.
func (w *Writer) link(entry int64) {
	w.t.Helper()
	size := int64(8)
	if w.compact {
		size = 4
	}
	if w.used == w.n {
		w.used, w.n = 0, max(4, 2*w.n)
		at := w.object(6, make([]byte, 8+int64(w.n)*size))
		if w.array == 0 {
			w.put(uint64(at), 176)
		} else {
			w.put(uint64(at), w.array+16)
		}
		w.array = at
	}
	w.write(w.item(nil, entry), w.array+24+int64(w.used)*size)
	w.used++
	w.entries++
}

// Damage appends an entry that cannot be read.
func (w *Writer) Damage() {
	w.t.Helper()
	w.link(w.object(9, make([]byte, 48)))
	w.put(w.entries, 152)
}

// Archive renames the file and closes it, as a rotation does.
func (w *Writer) Archive(path string) {
	w.t.Helper()
	if err := os.Rename(w.path, path); err != nil {
		w.t.Fatal(err)
	}
	w.path = path
	w.write([]byte{2}, 16)
}
