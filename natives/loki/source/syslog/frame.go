package syslog

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// framer finds messages in what comes: those that begin with their length in
// bytes and a space (octet counting), and those that end with a delimiter. Each
// message may come either way. What is longer than max is cut, the rest skipped.
//
// Format: https://www.rfc-editor.org/rfc/rfc6587#section-3.4
type framer struct {
	max      int
	delim    byte
	raw      bool // messages may begin with anything
	datagram bool // a message may have delimiters in it

	skip    int  // bytes that are left of a message that was cut
	discard bool // up to the next delimiter, for the same reason
}

// frame is a message, and what was found with it.
type frame struct {
	msg []byte // aliases what it was found in
	cut bool
}

// errFraming says that nobody can tell where the next message begins.
var errFraming = errors.New("a message begins with a length that cannot be one")

// next returns the first message in b and how many bytes it took. ok is false
// when there is none: n bytes are of no use, and the rest needs more after it.
// end says that nothing will come after b. The framer wants b to have room for
// max+room bytes.
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

// room is what may come before a message: its length.
const room = maxDigits + 1

// maxDigits is how many digits a length may have.
const maxDigits = 9

// pass returns how much of b belongs to a message that was cut.
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

// counted reads a length and the space after it.
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
	case !f.raw && (head+1 == len(b) || b[head+1] != '<'): // a text that begins with a number
		return 0, 0, uncounted
	}
	return length, head + 1, complete
}

// takeMessage takes a message of a known length.
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

// delimited takes a message up to the delimiter.
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

// delimiter returns where the message ends, -1 when that is not in b. A datagram
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

// priority reports whether b begins with one.
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

// trimPartialRune takes what was cut of a character at the end away.
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
