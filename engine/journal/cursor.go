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
)

// The cursor file: "WEIRCUR\n", version u32, number of lanes u32, next
// sequence number u64, then for each lane the lowest block that is not done
// u64, CRC32C of all before u32. Little endian. The journal's cursor is the
// lowest of the lanes; keeping all of them repeats less after a crash.
const (
	cursorMagic   = "WEIRCUR\n"
	cursorVersion = 1
	cursorName    = "cursor"
)

// cursor returns the cursor file's content now. mu is held.
func (j *Journal) cursor() []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), cursorMagic...)
	b = le.AppendUint32(b, cursorVersion)
	b = le.AppendUint32(b, uint32(len(j.lanes)))
	b = le.AppendUint64(b, j.appended)
	for _, l := range j.lanes {
		b = le.AppendUint64(b, j.low(l))
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// saveCursor replaces the cursor file, if it would change. One goroutine at a
// time calls it.
func (j *Journal) saveCursor(content []byte, policy Fsync) error {
	if bytes.Equal(content, j.saved) {
		return nil
	}
	if err := replaceFile(filepath.Join(j.dir, cursorName), content, policy != FsyncNone); err != nil {
		return err
	}
	j.saved = content
	return nil
}

// readCursor returns the lowest block that is not done, by lane, and the next
// sequence number. Without a good cursor file everything in the journal is
// pending.
func (j *Journal) readCursor() (done []uint64, next uint64) {
	path := filepath.Join(j.dir, cursorName)
	b, err := os.ReadFile(path)
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

func parseCursor(b []byte) (done []uint64, next uint64, err error) {
	le := binary.LittleEndian
	if len(b) < 28 || string(b[:8]) != cursorMagic {
		return nil, 0, errors.New("it is no cursor file")
	}
	n := len(b) - 4
	if le.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, 0, errors.New("checksum does not match")
	}
	if v := le.Uint32(b[8:]); v != cursorVersion {
		return nil, 0, fmt.Errorf("%w %d", errUnknownVersion, v)
	}
	lanes := int(le.Uint32(b[12:]))
	if lanes > MaxLanes || n != 24+8*lanes {
		return nil, 0, errors.New("its length is wrong")
	}
	next = le.Uint64(b[16:])
	for i := range lanes {
		done = append(done, le.Uint64(b[24+8*i:]))
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
