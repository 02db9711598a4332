package receivehttp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// cursor reads the protobuf wire format as Prometheus's generated code does:
// what that accepts is accepted, down to varints with bits to spare. After an
// error ok is false, and every read returns nothing.
//
// Format: https://protobuf.dev/programming-guides/encoding/
type cursor struct {
	b  []byte
	i  int
	ok bool
}

func read(b []byte) cursor { return cursor{b: b, ok: true} }

// The wire types.
const (
	wireVarint = 0
	wireFixed  = 1
	wireBytes  = 2
	wireGroup  = 3
	wireEnd    = 4
	wireFixed4 = 5
)

var errMessage = errors.New("the body is not a valid protobuf message")

func (c *cursor) fail() { c.i, c.ok = len(c.b), false }

// more reports whether there is something left to read.
func (c *cursor) more() bool { return c.i < len(c.b) }

func (c *cursor) varint() (v uint64) {
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

// field reads a field's number and wire type.
func (c *cursor) field() (num int32, wireType int) {
	v := c.varint()
	num, wireType = int32(v>>3), int(v&7)
	if wireType == wireEnd || num <= 0 {
		c.fail()
		return 0, wireVarint
	}
	return num, wireType
}

func (c *cursor) bytes() []byte {
	n := c.varint()
	if n > uint64(len(c.b)-c.i) {
		c.fail()
		return nil
	}
	b := c.b[c.i : c.i+int(n)]
	c.i += int(n)
	return b
}

func (c *cursor) float() float64 {
	if len(c.b)-c.i < 8 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b[c.i:])
	c.i += 8
	return math.Float64frombits(v)
}

// want fails unless the field has the wire type that the message says.
func (c *cursor) want(got, want int) {
	if got != want {
		c.fail()
	}
}

// skip passes over the content of a field that is not known.
func (c *cursor) skip(wireType int) {
	for depth := 0; ; {
		switch wireType {
		case wireVarint:
			c.varint()
		case wireFixed:
			c.pass(8)
		case wireBytes:
			c.pass(c.varint())
		case wireGroup:
			depth++
		case wireEnd:
			if depth == 0 {
				c.fail()
			}
			depth--
		case wireFixed4:
			c.pass(4)
		default:
			c.fail()
		}
		if !c.ok || depth == 0 {
			return
		}
		wireType = int(c.varint() & 7)
	}
}

func (c *cursor) pass(n uint64) {
	if n > uint64(len(c.b)-c.i) {
		c.fail()
		return
	}
	c.i += int(n)
}

// err returns what is wrong with the message, nil when it was read to its end.
func (c *cursor) err(what string) error {
	if c.ok {
		return nil
	}
	return fmt.Errorf("%w: %s is broken", errMessage, what)
}
