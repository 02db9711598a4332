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

// The cursor file has two slots of 1024 bytes, of which the one with the higher
// generation counts; a save overwrites the other, so that whenever it breaks off
// one is whole. To make a new file every second and rename it cost more than all
// the writing of 20,000 samples a second.
//
// A slot: "WEIRCUR\n", version u32, number of shards u32, generation u64, next
// sequence number u64, then for each shard the lowest block that is not done
// u64, CRC32C of all before u32. Little endian. The journal's cursor is the
// lowest of the shards; keeping all of them repeats less after a crash.
//
// Version 1 is a slot without the generation, alone in its file.
const (
	cursorMagic   = "WEIRCUR\n"
	cursorVersion = 2
	cursorName    = "cursor"
	cursorSlot    = 1024
)

// cursorFile saves cursors. One goroutine at a time uses it.
type cursorFile struct {
	f          *os.File // nil until the first save
	generation uint64
	saved      []byte // the content
}

// cursor returns what the cursor file is to say: a slot from its next sequence
// number on. mu is held.
func (j *Journal) cursor() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+8*len(j.shards)), j.appended)
	for _, l := range j.shards {
		b = binary.LittleEndian.AppendUint64(b, j.low(l))
	}
	return b
}

// slot returns content as a slot.
func (c *cursorFile) slot(content []byte) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, cursorSlot), cursorMagic...)
	b = le.AppendUint32(b, cursorVersion)
	b = le.AppendUint32(b, uint32(len(content)/8-1))
	b = le.AppendUint64(b, c.generation)
	b = append(b, content...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// saveCursor writes the cursor file, if it would change.
func (j *Journal) saveCursor(content []byte, policy Fsync) error {
	c := &j.cursorFile
	if bytes.Equal(content, c.saved) {
		return nil
	}
	c.saved = nil // nobody knows, until it is written
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
		c.close() // a new file may do
	}
	// The first of this run: what is there may be of another version, or broken.
	file := append(make([]byte, c.offset()), c.slot(content)...)
	if err := replaceFile(path, file, sync); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0o600)
	if err != nil {
		return nil // it is saved; the next save makes a file again
	}
	c.f = f
	return nil
}

// offset returns where the slot of the current generation is: of the first at
// the start of the file.
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
// sequence number. Without a good cursor file everything in the journal is
// pending.
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

// parseCursor reads a cursor file.
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

// parsePositions reads what follows a version; skip is what stands between the
// number of shards and the next sequence number.
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

// replaceFile writes a file so that a reader sees the old or the new content.
func replaceFile(path string, content []byte, sync bool) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	return err
}
