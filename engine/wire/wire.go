// Package wire reads messages in the protobuf wire format, for components that
// decode pushed data by hand, because the generated code copies every name,
// value and line. It knows no message types and writes none.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Cursor reads the protobuf wire format like gogo's generated code, which
// Prometheus and Loki use: it accepts the same input, including varints with
// superfluous bits. After an error, OK and More return false, and every read
// returns the zero value.
//
// Format: https://protobuf.dev/programming-guides/encoding/
type Cursor struct {
	b  []byte
	i  int
	ok bool
}

// Read returns a Cursor at the beginning of a message.
func Read(b []byte) Cursor { return Cursor{b: b, ok: true} }

// The wire types.
const (
	Varint  = 0
	Fixed64 = 1
	Bytes   = 2
	Fixed32 = 5

	group    = 3
	groupEnd = 4
)

// ErrMessage is wrapped by all errors of messages.
var ErrMessage = errors.New("the body is not a valid protobuf message")

func (c *Cursor) fail() { c.i, c.ok = len(c.b), false }

// More reports whether there is something left to read.
func (c *Cursor) More() bool { return c.i < len(c.b) }

// OK reports whether all reads so far were good.
func (c *Cursor) OK() bool { return c.ok }

// Offset returns the number of bytes read.
func (c *Cursor) Offset() int { return c.i }

// Varint reads the content of a varint field.
func (c *Cursor) Varint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if c.i >= len(c.b) {
			break
		}
		x := c.b[c.i]
		c.i++
		v |= uint64(x&0x7f) << shift
		if x < 0x80 {
			return v
		}
	}
	c.fail()
	return 0
}

// Field reads a field's number and wire type.
func (c *Cursor) Field() (num int32, wireType int) {
	v := c.Varint()
	num, wireType = int32(v>>3), int(v&7)
	if wireType == groupEnd || num <= 0 {
		c.fail()
		return 0, Varint
	}
	return num, wireType
}

// Bytes reads the content of a length-delimited field, which aliases the
// message.
func (c *Cursor) Bytes() []byte {
	n := c.Varint()
	if n > uint64(len(c.b)-c.i) {
		c.fail()
		return nil
	}
	b := c.b[c.i : c.i+int(n)]
	c.i += int(n)
	return b
}

// Double reads the content of a double field.
func (c *Cursor) Double() float64 {
	if len(c.b)-c.i < 8 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b[c.i:])
	c.i += 8
	return math.Float64frombits(v)
}

// Uint32s appends the values of a repeated field of numbers, packed or not.
func (c *Cursor) Uint32s(dst []uint32, wireType int) []uint32 {
	if wireType == Varint {
		return append(dst, uint32(c.Varint()))
	}
	c.Want(wireType, Bytes)
	// The last one may extend past the field's end, as in the generated code.
	n := c.Varint()
	if n > uint64(len(c.b)-c.i) {
		c.fail()
	}
	for end := c.i + int(n); c.ok && c.i < end; {
		dst = append(dst, uint32(c.Varint()))
	}
	return dst
}

// Want fails unless the field has the declared wire type.
func (c *Cursor) Want(got, want int) {
	if got != want {
		c.fail()
	}
}

// Skip skips the content of an unknown field.
func (c *Cursor) Skip(wireType int) {
	for depth := 0; ; {
		switch wireType {
		case Varint:
			c.Varint()
		case Fixed64:
			c.pass(8)
		case Bytes:
			c.pass(c.Varint())
		case group:
			depth++
		case groupEnd:
			if depth == 0 {
				c.fail()
			}
			depth--
		case Fixed32:
			c.pass(4)
		default:
			c.fail()
		}
		if !c.ok || depth == 0 {
			return
		}
		wireType = int(c.Varint() & 7)
	}
}

func (c *Cursor) pass(n uint64) {
	if n > uint64(len(c.b)-c.i) {
		c.fail()
		return
	}
	c.i += int(n)
}

// Err returns the error in the message, or nil if it was read to its end.
func (c *Cursor) Err(what string) error {
	if c.ok {
		return nil
	}
	return fmt.Errorf("%w: %s is broken", ErrMessage, what)
}
