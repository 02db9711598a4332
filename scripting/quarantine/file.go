package quarantine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// Entry describes a stored batch, or some of its records.
type Entry struct {
	ID      uint64    `json:"id"`      // ascending, unique in a store
	Node    string    `json:"node"`    // that failed: http.paths.default
	Script  string    `json:"script"`  // its component: http.paths
	File    string    `json:"file"`    // as shown to people
	Version string    `json:"version"` // of the script's content
	Args    string    `json:"args"`    // a hash of the block's arguments
	Time    time.Time `json:"time"`
	Signal  string    `json:"signal"` // metrics or logs
	Records int       `json:"records"`
	// Error is the script's error as JSON; Text is the same as text.
	Error json.RawMessage `json:"error"`
	Text  string          `json:"text"`

	Size int64 `json:"-"` // of the file, in bytes
}

const (
	suffix  = ".quarantine"
	aside   = ".damaged"
	magic   = "weirquar"
	version = 1
	// headerSize is the size of magic, version, and the lengths of the entry and
	// of the data.
	headerSize = len(magic) + 4 + 4 + 8
	maxEntry   = 1 << 20
	maxData    = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Dir returns the directory of a node's quarantine.
func Dir(storage, node string) string {
	return filepath.Join(storage, "quarantine", url.PathEscape(node))
}

// Nodes returns the nodes with data in quarantine below a storage directory,
// sorted.
func Nodes(storage string) ([]string, error) {
	dirs, err := os.ReadDir(filepath.Join(storage, "quarantine"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the quarantine: %w", err)
	}
	var nodes []string
	for _, d := range dirs {
		if node, err := url.PathUnescape(d.Name()); err == nil && d.IsDir() {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes, nil
}

func encode(e *Entry, data []byte) ([]byte, error) {
	head, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(head) > maxEntry || len(data) > maxData {
		return nil, errors.New("it is too large")
	}
	out := make([]byte, 0, headerSize+len(head)+len(data)+4)
	out = append(out, magic...)
	out = binary.LittleEndian.AppendUint32(out, version)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(data)))
	out = append(out, head...)
	out = append(out, data...)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli)), nil
}

var (
	errDamaged = errors.New("it is damaged")
	errVersion = errors.New("it was written by another version of weir")
)

// readHead reads the entry at the beginning of a file, and returns the position
// of its data.
func readHead(r io.ReaderAt, size int64) (e Entry, at, n int64, err error) {
	var h [headerSize]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			err = errDamaged
		}
		return e, 0, 0, err
	}
	if string(h[:len(magic)]) != magic {
		return e, 0, 0, errDamaged
	}
	if v := binary.LittleEndian.Uint32(h[len(magic):]); v != version {
		return e, 0, 0, fmt.Errorf("%w: version %d", errVersion, v)
	}
	head := int64(binary.LittleEndian.Uint32(h[len(magic)+4:]))
	n = int64(binary.LittleEndian.Uint64(h[len(magic)+8:]))
	if head > maxEntry || n < 0 || n > maxData || int64(headerSize)+head+n+4 != size {
		return e, 0, 0, errDamaged
	}
	b := make([]byte, head)
	if _, err := r.ReadAt(b, int64(headerSize)); err != nil {
		return e, 0, 0, err
	}
	if json.Unmarshal(b, &e) != nil {
		return e, 0, 0, errDamaged
	}
	e.Size = size
	return e, int64(headerSize) + head, n, nil
}

func fileName(id uint64) string { return fmt.Sprintf("%020d%s", id, suffix) }

func idOf(name string) (id uint64, ok bool) {
	_, err := fmt.Sscanf(name, "%020d"+suffix, &id)
	return id, err == nil && name == fileName(id)
}

// Listing is the content of a quarantine.
type Listing struct {
	Entries []Entry // in the order of their IDs
	// Aside are the names of files that cannot be read, with the reasons.
	Aside []string
}

// List reads a directory; one that does not exist is empty. It changes nothing,
// and may be called while a Store uses the directory.
func List(dir string) (l Listing, err error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("cannot read the quarantine: %w", err)
	}
	for _, d := range names {
		name := d.Name()
		if strings.HasSuffix(name, aside) {
			l.Aside = append(l.Aside, name)
			continue
		}
		if _, ok := idOf(name); !ok {
			continue
		}
		e, err := head(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed in the meantime
		case err != nil:
			l.Aside = append(l.Aside, fmt.Sprintf("%s: %v", name, err))
		default:
			l.Entries = append(l.Entries, e)
		}
	}
	return l, nil
}

func head(path string) (Entry, error) {
	f, err := files.Open(path)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Entry{}, err
	}
	e, _, _, err := readHead(f, fi.Size())
	return e, err
}

// Read returns an entry and its data, after checking them.
func Read(dir string, id uint64) (e Entry, data []byte, err error) {
	b, err := files.Read(filepath.Join(dir, fileName(id)), files.MaxOwn)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil, fmt.Errorf("there is no entry %d in the quarantine: %w", id, fs.ErrNotExist)
	}
	if err == nil {
		e, data, err = decode(b)
	}
	if err != nil {
		return e, nil, fmt.Errorf("cannot read entry %d of the quarantine: %w", id, err)
	}
	return e, data, nil
}

func decode(b []byte) (e Entry, data []byte, err error) {
	e, at, n, err := readHead(strings.NewReader(string(b)), int64(len(b)))
	if err != nil {
		return e, nil, err
	}
	sum := binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(b[:len(b)-4], castagnoli) != sum {
		return e, nil, errDamaged
	}
	return e, b[at : at+n], nil
}

// Remove removes an entry from a directory that no Store uses.
func Remove(dir string, id uint64) error {
	err := os.Remove(filepath.Join(dir, fileName(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no entry %d in the quarantine: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("cannot drop entry %d of the quarantine: %w", id, err)
	}
	_ = os.Remove(dir) // if it is empty
	return nil
}
