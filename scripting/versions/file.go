package versions

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/engine/files"
)

// A record is a file: the magic, the version of the format, the SHA-256 of the rest,
// and the rest, which is JSON.
const (
	magic   = "weirhist"
	version = 1

	headerSize = len(magic) + 4 + sha256.Size
	// maxFile bounds a record, and a text.
	maxFile = 16 << 20
)

func writeRecord(path string, r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(b) > maxFile-headerSize {
		return fmt.Errorf("the record is larger than %d MiB", maxFile>>20)
	}
	sum := sha256.Sum256(b)
	out := append(make([]byte, 0, headerSize+len(b)), magic...)
	out = binary.LittleEndian.AppendUint32(out, version)
	return writeFile(path, append(append(out, sum[:]...), b...))
}

// writeFile writes a file and creates its directory.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return files.Replace(path, content, true)
}

func readRecord(path string) (r Record, err error) {
	b, err := files.Read(path, maxFile)
	if errors.Is(err, files.ErrTooLarge) {
		return r, errors.New("it is damaged: it is too large")
	}
	if err != nil {
		return r, err
	}
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return r, errors.New("it is damaged")
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != version {
		return r, fmt.Errorf("it was written by another version of weir: its format is %d, not %d", v, version)
	}
	sum := sha256.Sum256(b[headerSize:])
	if !bytes.Equal(sum[:], b[len(magic)+4:headerSize]) {
		return r, errors.New("it is damaged: its checksum is wrong")
	}
	if err := json.Unmarshal(b[headerSize:], &r); err != nil {
		return r, fmt.Errorf("it is damaged: %w", err)
	}
	for _, v := range r.Versions {
		if len(v.Sources) == 0 {
			return r, fmt.Errorf("it is damaged: version %s has no sources", v.ID)
		}
	}
	return r, nil
}

// readText returns the text of a source.
func readText(path string, src Source) (string, error) {
	b, err := files.Read(path, max(src.Size, 1))
	if err != nil {
		return "", err
	}
	if hash(string(b)) != src.Hash {
		return "", errors.New("it is damaged: its hash is wrong")
	}
	return string(b), nil
}
