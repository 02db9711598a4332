package journalfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// Compression of an object, by its flags.
const (
	objectXZ   = 1
	objectLZ4  = 2
	objectZstd = 4
)

// decompressor decompresses the payload of data objects. Its zero value is ready
// to use.
type decompressor struct{ zstd *zstd.Decoder }

// decompress returns the first maxValue decompressed bytes of b.
func (d *decompressor) decompress(flags byte, b []byte) ([]byte, error) {
	switch flags & (objectXZ | objectLZ4 | objectZstd) {
	case objectXZ:
		r, err := xz.ReaderConfig{DictCap: 1 << 20}.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, &damage{fmt.Sprintf("cannot decompress XZ: %v", err)}
		}
		return limited("XZ", r)
	case objectLZ4:
		if len(b) < 8 {
			return nil, &damage{"an LZ4 object is too short"}
		}
		size := binary.LittleEndian.Uint64(b)
		if size > maxValue {
			return nil, &damage{fmt.Sprintf("an LZ4 object is %d bytes, more than %d", size, maxValue)}
		}
		out := make([]byte, size)
		n, err := lz4.UncompressBlock(b[8:], out)
		if err != nil {
			return nil, &damage{fmt.Sprintf("cannot decompress LZ4: %v", err)}
		}
		return out[:n], nil
	case objectZstd:
		if d.zstd == nil {
			var err error
			if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(2*maxValue)); err != nil {
				return nil, fmt.Errorf("BUG: cannot make a Zstandard decoder: %w", err)
			}
		}
		if err := d.zstd.Reset(bytes.NewReader(b)); err != nil {
			return nil, &damage{fmt.Sprintf("cannot decompress Zstandard: %v", err)}
		}
		return limited("Zstandard", d.zstd)
	}
	return nil, &damage{fmt.Sprintf("unknown compression (flags %#x)", flags)}
}

func limited(name string, r io.Reader) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, maxValue))
	if err != nil {
		return nil, &damage{fmt.Sprintf("cannot decompress %s: %v", name, err)}
	}
	return out, nil
}

// close closes the decoder.
func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}
