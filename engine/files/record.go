package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Record is the format of a file of weir that contains one value as JSON. The file
// consists of the magic, the version, the SHA-256 of the rest, and the rest.
type Record struct {
	Magic   string
	Version uint32
	Limit   int // in bytes
}

// Replace writes v to a file, as [Replace] with sync does.
func (r Record) Replace(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	out := append(make([]byte, 0, len(r.Magic)+4+len(sum)+len(b)), r.Magic...)
	out = append(append(binary.LittleEndian.AppendUint32(out, r.Version), sum[:]...), b...)
	if len(out) > r.Limit {
		return tooLarge(path, int64(r.Limit))
	}
	return Replace(path, out, true)
}

// Read decodes a file into v. Errors about its content are about "it".
func (r Record) Read(path string, v any) error {
	b, err := Read(path, int64(r.Limit))
	if errors.Is(err, ErrTooLarge) {
		return errors.New("it is damaged: it is too large")
	}
	if err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(b, []byte(r.Magic))
	if !ok || len(rest) < 4+sha256.Size {
		return errors.New("it is damaged")
	}
	if version := binary.LittleEndian.Uint32(rest); version != r.Version {
		return fmt.Errorf("it was written by another version of weir: its format is %d, not %d", version, r.Version)
	}
	sum := sha256.Sum256(rest[4+sha256.Size:])
	if !bytes.Equal(sum[:], rest[4:4+sha256.Size]) {
		return errors.New("it is damaged: its checksum is wrong")
	}
	if err := json.Unmarshal(rest[4+sha256.Size:], v); err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	return nil
}
