package push

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/wire"
)

// Reader decodes a decompressed push request:
//
//	for r := push.NewReader(body); r.NextStream(); {
//		labels := r.Labels
//		for r.NextEntry() {
//			…
//		}
//	}
//	err := r.Err()
//
// It accepts everything that Loki's own code accepts. After an error, there are
// no further streams or entries.
type Reader struct {
	// Labels are the labels of the stream as text: see ParseLabels.
	Labels string

	// T is the time of the entry in Unix ns. Times outside the range are limited
	// to it. If the entry has no time, T is 0 and Timed is false.
	T     int64
	Timed bool
	// Line may contain any bytes.
	Line string
	// Meta is the structured metadata as received: not sorted and possibly with
	// duplicate names; see SortMeta. Each entry has its own slice, nil if it has
	// none.
	Meta []batch.Label
	// MetaLimit limits the number of elements of Meta to MetaLimit+1, unless it
	// is 0. Each takes two bytes in a request, but 32 in memory.
	MetaLimit int

	request, entries wire.Cursor
	err              error
}

// NewReader returns a Reader of a body. All strings alias the body, which must
// never be written to again.
func NewReader(body []byte) *Reader { return &Reader{request: wire.Read(body)} }

// Err returns the error in the request, a wire.ErrMessage, or nil if it was read
// to its end.
func (r *Reader) Err() error { return r.err }

// NextStream advances to the next stream and skips the rest of the current one.
func (r *Reader) NextStream() bool {
	for r.NextEntry() {
	}
	for r.err == nil && r.request.More() {
		num, typ := r.request.Field()
		if num != 1 {
			if num == 2 {
				r.request.Want(typ, wire.Bytes) // format
			}
			r.request.Skip(typ)
			continue
		}
		r.request.Want(typ, wire.Bytes)
		if s := r.request.Bytes(); r.request.OK() {
			return r.open(s)
		}
	}
	if r.err == nil {
		r.err = r.request.Err("it")
	}
	return false
}

// open begins a stream. Its labels may be anywhere in it.
func (r *Reader) open(stream []byte) bool {
	r.Labels = ""
	c := wire.Read(stream)
	for c.More() {
		switch num, typ := c.Field(); num {
		case 1:
			c.Want(typ, wire.Bytes)
			r.Labels = text(c.Bytes())
		case 2:
			c.Want(typ, wire.Bytes)
			c.Bytes()
		case 3:
			c.Want(typ, wire.Varint)
			c.Varint()
		default:
			c.Skip(typ)
		}
	}
	r.err = c.Err("a stream")
	r.entries = wire.Read(stream)
	return r.err == nil
}

// NextEntry advances to the next entry of the stream.
func (r *Reader) NextEntry() bool {
	for r.err == nil && r.entries.More() {
		num, typ := r.entries.Field()
		if num != 2 {
			r.entries.Skip(typ)
			continue
		}
		r.err = r.entry(r.entries.Bytes())
		return r.err == nil
	}
	return false
}

func (r *Reader) entry(b []byte) (err error) {
	r.T, r.Timed, r.Line, r.Meta = 0, false, "", nil
	c := wire.Read(b)
	for c.More() {
		switch num, typ := c.Field(); num {
		case 1:
			c.Want(typ, wire.Bytes)
			if t := c.Bytes(); c.OK() {
				if r.T, err = timestamp(t); err != nil {
					return err
				}
				r.Timed = true
			}
		case 2:
			c.Want(typ, wire.Bytes)
			r.Line = text(c.Bytes())
		case 3, 4: // 4, parsed, occurs in Loki's query results
			c.Want(typ, wire.Bytes)
			l, err := label(c.Bytes())
			if err != nil {
				return err
			}
			if num == 3 && c.OK() && (r.MetaLimit == 0 || len(r.Meta) <= r.MetaLimit) {
				r.Meta = append(r.Meta, l)
			}
		default:
			c.Skip(typ)
		}
	}
	return c.Err("an entry")
}

// The range of a Timestamp in seconds: the years 1 to 9999.
const (
	minSeconds = -62135596800
	maxSeconds = 253402300800
)

func timestamp(b []byte) (int64, error) {
	var seconds int64
	var nanos int32
	c := wire.Read(b)
	for c.More() {
		switch num, typ := c.Field(); num {
		case 1:
			c.Want(typ, wire.Varint)
			seconds = int64(c.Varint())
		case 2:
			c.Want(typ, wire.Varint)
			nanos = int32(c.Varint())
		default:
			c.Skip(typ)
		}
	}
	if err := c.Err("a timestamp"); err != nil {
		return 0, err
	}
	if seconds < minSeconds || seconds >= maxSeconds || nanos < 0 || nanos >= 1e9 {
		return 0, fmt.Errorf("%w: there is no time of %d seconds and %d nanoseconds", wire.ErrMessage, seconds, nanos)
	}
	const second = 1_000_000_000
	switch {
	case seconds >= math.MaxInt64/second:
		return math.MaxInt64, nil
	case seconds <= math.MinInt64/second:
		return math.MinInt64, nil
	}
	return seconds*second + int64(nanos), nil
}

func label(b []byte) (l batch.Label, err error) {
	c := wire.Read(b)
	for c.More() {
		switch num, typ := c.Field(); num {
		case 1:
			c.Want(typ, wire.Bytes)
			l.Name = text(c.Bytes())
		case 2:
			c.Want(typ, wire.Bytes)
			l.Value = text(c.Bytes())
		default:
			c.Skip(typ)
		}
	}
	return l, c.Err("an entry's metadata")
}

// text returns b as a string without copying it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
