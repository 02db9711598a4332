package outbox

import (
	"encoding/binary"
	"errors"
)

// CutSnappy returns the part of a snappy block after the length: its elements.
// raw is that length, the number of bytes before compression.
//
// Elements refer to earlier bytes by distance, and never beyond the beginning
// of their own block. Therefore, the concatenated elements of several blocks
// are the elements of their concatenated contents, and blocks are joined
// without decompressing them.
//
// Format: https://github.com/google/snappy/blob/main/format_description.txt
func CutSnappy(block []byte) (raw int, elements []byte, err error) {
	n, size := binary.Uvarint(block)
	if size <= 0 {
		return 0, nil, errors.New("block is cut off")
	}
	return int(n), block[size:], nil
}
