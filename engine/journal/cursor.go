package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/engine/files"
)

// The cursor file has two slots of 1024 bytes. The slot with the higher
// generation is valid. A save overwrites the other slot, so that one slot is
// intact whenever a save is interrupted. Creating and renaming a new file every
// second cost more than all writes of 20,000 samples per second.
//
// A slot: "WEIRCUR\n", version u32, number of shards u32, generation u64, next
// sequence number u64, then for each shard the lowest block that is not done
// u64, then CRC32C of all preceding bytes u32. Integers are little endian. The
// journal's cursor is the lowest of the shards; storing all of them means that
// fewer blocks are repeated after a crash.
//
// Version 1 is a single slot without the generation.
const (
	cursorMagic   = "WEIRCUR\n"
	cursorVersion = 2
	cursorName    = "cursor"
	cursorSlot    = 1024
)

// cursorFile saves cursors. Only one goroutine may use it at a time.
type cursorFile struct {
	f          *os.File // nil until the first save
	generation uint64
	saved      []byte // the content
}

// cursor returns the content of a slot of the cursor file from the next
// sequence number on. mu is held.
func (j *Journal) cursor() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+8*len(j.shards)), j.appended)
	for _, l := range j.shards {
		b = binary.LittleEndian.AppendUint64(b, j.low(l))
	}
	return b
}

// slot returns content in the format of a slot.
func (c *cursorFile) slot(content []byte) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, cursorSlot), cursorMagic...)
	b = le.AppendUint32(b, cursorVersion)
	b = le.AppendUint32(b, uint32(len(content)/8-1))
	b = le.AppendUint64(b, c.generation)
	b = append(b, content...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// saveCursor writes the cursor file if it changed.
func (j *Journal) saveCursor(content []byte, policy Fsync) error {
	c := &j.cursorFile
	if bytes.Equal(content, c.saved) {
		return nil
	}
	c.saved = nil // unknown until the write succeeds
	if err := c.write(filepath.Join(j.dir, cursorName), content, policy != FsyncNone); err != nil {
		return err
	}
	c.saved = content
	return nil
}

func (c *cursorFile) write(path string, content []byte, sync bool) error {
	c.generation++
	if c.f != nil {
		_, err := c.f.WriteAt(c.slot(content), c.offset())
		if err == nil && sync {
			err = c.f.Sync()
		}
		if err == nil {
			return nil
		}
		c.close() // a new file may work
	}
	// This is the first save of this process: the existing file may be of another
	// version, or damaged.
	file := append(make([]byte, c.offset()), c.slot(content)...)
	if err := files.Replace(path, file, sync); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0o600)
	if err != nil {
		return nil // the cursor is saved; the next save creates a file again
	}
	c.f = f
	return nil
}

// offset returns the offset of the slot for the current generation. The first
// generation is at the start of the file.
func (c *cursorFile) offset() int64 { return int64((c.generation-1)%2) * cursorSlot }

// close closes the file.
func (c *cursorFile) close() error {
	if c.f == nil {
		return nil
	}
	f := c.f
	c.f = nil
	return f.Close()
}

// readCursor returns the lowest block that is not done, by shard, and the next
// sequence number. If there is no valid cursor file, everything in the journal
// is pending.
func (j *Journal) readCursor() (done []uint64, next uint64) {
	path := filepath.Join(j.dir, cursorName)
	b, err := files.Read(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0
	}
	if err == nil {
		done, next, err = parseCursor(b)
	}
	if err != nil {
		j.o.Logger.Warn("cannot read the journal's cursor; everything in the journal is sent again", "path", path, "err", err)
		if errors.Is(err, errUnknownVersion) {
			if err := j.setAside(path, err); err != nil {
				j.o.Logger.Error("cannot keep the cursor", "err", err)
			}
		}
	}
	return done, next
}

// parseCursor parses a cursor file.
func parseCursor(b []byte) (done []uint64, next uint64, err error) {
	le := binary.LittleEndian
	if len(b) >= 16 && string(b[:8]) == cursorMagic && le.Uint32(b[8:]) != cursorVersion {
		n := len(b) - 4
		if v := le.Uint32(b[8:]); le.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli) {
			if v != 1 {
				return nil, 0, fmt.Errorf("%w %d", errUnknownVersion, v)
			}
			return parsePositions(b[12:n], 0)
		}
	}
	var generation uint64
	found := errors.New("it is no cursor file")
	for off := 0; off < 2*cursorSlot && off < len(b); off += cursorSlot {
		s := b[off:min(off+cursorSlot, len(b))]
		if len(s) < 36 || string(s[:8]) != cursorMagic {
			continue
		}
		n := 32 + 8*int(min(le.Uint32(s[12:]), MaxShards))
		if len(s) < n+4 || le.Uint32(s[n:]) != crc32.Checksum(s[:n], castagnoli) {
			if done == nil {
				found = errors.New("checksum does not match")
			}
			continue
		}
		if v := le.Uint32(s[8:]); v != cursorVersion {
			return nil, 0, fmt.Errorf("%w %d", errUnknownVersion, v)
		}
		if g := le.Uint64(s[16:]); done == nil || g > generation {
			generation = g
			done, next, found = parsePositions(s[12:n], 8)
		}
	}
	if found != nil {
		return nil, 0, found
	}
	return done, next, nil
}

// parsePositions parses the part after the version. skip is the number of bytes
// between the number of shards and the next sequence number.
func parsePositions(b []byte, skip int) (done []uint64, next uint64, err error) {
	le := binary.LittleEndian
	if len(b) < 12+skip {
		return nil, 0, errors.New("it is too short")
	}
	shards := int(le.Uint32(b))
	b = b[4+skip:]
	if shards > MaxShards || len(b) != 8+8*shards {
		return nil, 0, errors.New("its length is wrong")
	}
	next = le.Uint64(b)
	done = make([]uint64, shards)
	for i := range done {
		done[i] = le.Uint64(b[8+8*i:])
	}
	return done, next, nil
}
