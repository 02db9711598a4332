package file

import (
	"bytes"
	"unsafe"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"

	"fmt"
)

// coding is the encoding of a file. It determines the bytes that end a line and
// how a line is converted to UTF-8.
type coding struct {
	nl, cr []byte
	enc    encoding.Encoding // nil: lines are not converted
}

// plain does not convert lines.
var plain = &coding{nl: []byte{'\n'}, cr: []byte{'\r'}}

// encodingOf returns the coding of an IANA name.
func encodingOf(name string) (*coding, error) {
	if name == "" {
		return plain, nil
	}
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return nil, fmt.Errorf("encoding %q is not known: want the IANA name of one, such as UTF-8, UTF-16LE, ISO-8859-1 or GBK", name)
	}
	return newCoding(enc)
}

func newCoding(enc encoding.Encoding) (*coding, error) {
	if enc == unicode.UTF8 || enc == encoding.Nop {
		return plain, nil
	}
	// The encoder may write a byte order mark first.
	e := enc.NewEncoder()
	one := func(c byte) []byte {
		a, errA := e.Bytes([]byte{c})
		b, errB := e.Bytes([]byte{c, c})
		if errA != nil || errB != nil {
			return nil
		}
		return b[len(a):]
	}
	c := &coding{nl: one('\n'), cr: one('\r'), enc: enc}
	if len(c.nl) == 0 || len(c.cr) == 0 {
		return nil, fmt.Errorf("encoding has no character for the end of a line")
	}
	if enc == unicode.UTF16(unicode.BigEndian, unicode.UseBOM) {
		// Lines after the first have no byte order mark.
		c.enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return c, nil
}

// byMark returns the coding for the byte order mark at the start of a file and
// the length of the mark. Without a mark, it returns c.
func (c *coding) byMark(head []byte) (*coding, int) {
	for _, m := range []struct {
		mark  string
		order unicode.Endianness
	}{{"\xff\xfe", unicode.LittleEndian}, {"\xfe\xff", unicode.BigEndian}} {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			by, err := newCoding(unicode.UTF16(m.order, unicode.IgnoreBOM))
			if err != nil {
				return c, 0
			}
			return by, len(m.mark)
		}
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		return plain, 3
	}
	return c, 0
}

// width returns the number of bytes per code unit.
func (c *coding) width() int { return len(c.nl) }

// end returns the end of the last complete line in b, or 0 if there is none. b
// begins at the start of a character.
func (c *coding) end(b []byte) int {
	w := len(c.nl)
	if w == 1 {
		return bytes.LastIndexByte(b, c.nl[0]) + 1
	}
	for at := len(b) / w * w; ; {
		i := bytes.LastIndex(b[:at], c.nl)
		if i < 0 {
			return 0
		}
		if i%w == 0 {
			return i + w
		}
		at = i + w - 1 // the match lies across two characters
	}
}

// index returns the position of the first line end in b, or -1.
func (c *coding) index(b []byte) int {
	w := len(c.nl)
	if w == 1 {
		return bytes.IndexByte(b, c.nl[0])
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], c.nl)
		if i < 0 {
			return -1
		}
		if i += at; i%w == 0 {
			return i
		}
		at = i + 1
	}
}

// split returns the lines of b without their ends. The text after the last line
// end is a line, too. The lines may alias b, which must not be written to any
// more. bad is the number of lines that could not be decoded and were not
// converted.
func (c *coding) split(b []byte) (lines []string, bad int) {
	n := bytes.Count(b, c.nl)
	if len(b) > 0 && !bytes.HasSuffix(b, c.nl) {
		n++
	}
	lines = make([]string, 0, n)
	if c.enc == nil {
		return splitPlain(lines, b), 0
	}
	dec := c.enc.NewDecoder()
	for len(b) > 0 {
		line := b
		if i := c.index(b); i >= 0 {
			line, b = b[:i], b[i+len(c.nl):]
		} else {
			b = nil
		}
		line = bytes.TrimSuffix(line, c.cr)
		text, err := dec.Bytes(line)
		if err != nil {
			text, bad = line, bad+1
		}
		lines = append(lines, aliasString(text))
	}
	return lines, bad
}

func splitPlain(lines []string, b []byte) []string {
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		lines = append(lines, aliasString(line))
	}
	return lines
}

// aliasString returns b as a string that shares its memory. b must not be written
// to any more.
func aliasString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
