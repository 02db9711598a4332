package push

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/wire"
)

// Reader reads a request, which is not compressed any more:
//
//	for r := push.NewReader(body); r.NextStream(); {
//		labels := r.Labels
//		for r.NextEntry() {
//			…
//		}
//	}
//	err := r.Err()
//
// It accepts what Loki's own code accepts. After an error there is no further
// stream or entry.
type Reader struct {
	// Labels are those of the stream, as text: see ParseLabels.
	Labels string

	// T is the entry's time in Unix ns; one that lies beyond is the nearest. It
	// is 0, and Timed false, if the entry has none.
	T     int64
	Timed bool
	// Line may be any bytes.
	Line string
	// Meta is the structured metadata as it came: not sorted, and a name may be
	// there twice; see SortMeta. It is another slice for each entry, nil if
	// there is none.
	Meta []batch.Label
	// MetaLimit bounds Meta, unless it is 0: of more than that, Meta has one more.
	// An entry of two bytes would be 32.
	MetaLimit int

	request, entries wire.Cursor
	err              error
}

// NewReader returns a Reader of a body. All its strings are parts of the body,
// which must never be written to again.
func NewReader(body []byte) *Reader { return &Reader{request: wire.Read(body)} }

// Err returns what is wrong with the request, a wire.ErrMessage, nil when it was
// read to its end.
func (r *Reader) Err() error { return r.err }

// NextStream goes to the next stream, past what is left of the one before.
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

// open begins a stream. Its labels may stand anywhere in it.
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

// NextEntry goes to the stream's next entry.
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
		case 3, 4: // 4, parsed, is Loki's in answers to queries
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

// Times that a Timestamp may have, in seconds: the years 1 to 9999.
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
