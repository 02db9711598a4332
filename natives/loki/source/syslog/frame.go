package syslog

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// framer splits a stream of bytes into messages: those that begin with their
// length in bytes and a space (octet counting), and those that end with a
// delimiter. Each message may use either format. Messages longer than max are
// truncated, and the rest is skipped.
//
// Format: https://www.rfc-editor.org/rfc/rfc6587#section-3.4
type framer struct {
	max      int
	delim    byte
	raw      bool // messages may begin with any byte
	datagram bool // a message may contain delimiters

	skip    int  // number of bytes to skip of a truncated message
	discard bool // skip to the next delimiter, for the same reason
}

// frame is a message with properties of its framing.
type frame struct {
	msg []byte // aliases the input
	cut bool
}

// errFraming means that the start of the next message cannot be determined.
var errFraming = errors.New("a message begins with a length that cannot be one")

// next returns the first message in b and the number of bytes that it took. If ok
// is false, there is no message: n bytes are to be discarded, and more data is
// needed after the rest. end means that no data follows b. b must have a capacity
// of at least max+room bytes.
func (f *framer) next(b []byte, end bool) (m frame, n int, ok bool, err error) {
	if n = f.pass(b); n > 0 {
		return frame{}, n, false, nil
	}
	for n < len(b) && (b[n] == '\n' || b[n] == '\r' || b[n] == ' ' || b[n] == 0) {
		n++
	}
	rest := b[n:]
	if len(rest) == 0 {
		return frame{}, n, false, nil
	}
	if rest[0] >= '1' && rest[0] <= '9' {
		length, head, state := f.counted(rest, end)
		switch state {
		case incomplete:
			return frame{}, n, false, nil
		case broken:
			return frame{}, n, false, errFraming
		case complete:
			m, k, ok := f.takeMessage(rest, length, head, end)
			return m, n + k, ok, nil
		}
	}
	m, k, ok := f.delimited(rest, end)
	return m, n + k, ok, nil
}

// room is the maximum size of the length before a message.
const room = maxDigits + 1

// maxDigits is the maximum number of digits of a length.
const maxDigits = 9

// pass returns the number of bytes of b that belong to a truncated message.
func (f *framer) pass(b []byte) int {
	if f.skip > 0 {
		n := min(f.skip, len(b))
		f.skip -= n
		return n
	}
	if !f.discard {
		return 0
	}
	if i := bytes.IndexByte(b, f.delim); i >= 0 {
		f.discard = false
		return i + 1
	}
	return len(b)
}

type state uint8

const (
	incomplete state = iota
	complete
	broken
	uncounted
)

// counted parses a length and the space after it.
func (f *framer) counted(b []byte, end bool) (length, head int, s state) {
	for head < len(b) && b[head] >= '0' && b[head] <= '9' {
		if head == maxDigits {
			return 0, 0, broken
		}
		length = 10*length + int(b[head]-'0')
		head++
	}
	switch {
	case head < len(b) && b[head] != ' ', head == len(b) && end:
		return 0, 0, uncounted
	case head == len(b), head+1 == len(b) && !end:
		return 0, 0, incomplete
	case !f.raw && (head+1 == len(b) || b[head+1] != '<'): // text that begins with a number
		return 0, 0, uncounted
	}
	return length, head + 1, complete
}

// takeMessage returns a message whose length is known.
func (f *framer) takeMessage(b []byte, length, head int, end bool) (m frame, n int, ok bool) {
	have := len(b) - head
	want := min(length, f.max)
	if have < want && !end {
		return frame{}, 0, false
	}
	want = min(want, have)
	m.msg, m.cut = b[head:head+want], length > want
	if m.cut {
		m.msg = trimPartialRune(m.msg)
	}
	n = head + min(length, have)
	f.skip = length - (n - head)
	return m, n, want > 0
}

// delimited returns a message up to the delimiter.
func (f *framer) delimited(b []byte, end bool) (m frame, n int, ok bool) {
	i := f.delimiter(b)
	switch {
	case i >= 0:
		m.msg, n = b[:i], i+1
	case end:
		m.msg, n = b, len(b)
	case len(b) <= f.max+1: // one of them may be a carriage return
		return frame{}, 0, false
	default:
		m.msg, n = b, len(b)
		f.discard = true
	}
	if len(m.msg) > f.max+1 {
		m.msg, m.cut = m.msg[:f.max], true
	}
	m.msg = bytes.TrimRight(m.msg, "\r\n\x00")
	if len(m.msg) > f.max {
		m.msg, m.cut = m.msg[:f.max], true
	}
	if m.cut {
		m.msg = trimPartialRune(m.msg)
	}
	return m, n, len(m.msg) > 0
}

// delimiter returns the end of the message, or -1 if it is not in b. A datagram
// is one message, unless another priority stands at the beginning of a line.
func (f *framer) delimiter(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], f.delim)
		if i < 0 {
			return -1
		}
		i += from
		if !f.datagram || priority(b[i+1:]) {
			return i
		}
		from = i + 1
	}
}

// priority reports whether b begins with a priority.
func priority(b []byte) bool {
	i := bytes.IndexByte(b[:min(5, len(b))], '>')
	if i < 2 || b[0] != '<' {
		return false
	}
	for _, c := range b[1:i] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// trimPartialRune removes an incomplete character from the end of b.
func trimPartialRune(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			return b
		}
	}
	return b
}
