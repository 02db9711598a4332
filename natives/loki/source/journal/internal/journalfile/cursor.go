package journalfile

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// ID is a 128-bit ID of systemd.
type ID [16]byte

// String returns 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID parses 32 hexadecimal digits.
func ParseID(s string) (id ID, err error) {
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("%q does not have 32 hexadecimal digits", s)
	}
	_, err = hex.Decode(id[:], []byte(s))
	return id, err
}

// Cursor identifies an entry. It contains the same data as the result of
// sd_journal_get_cursor.
type Cursor struct {
	SeqnumID  ID     // the sequence; all files of one journald have the same
	Seqnum    uint64 // number of the entry in the sequence
	BootID    ID
	Monotonic uint64 // µs since the boot
	Realtime  uint64 // Unix µs
	XorHash   uint64 // of the fields
}

// String returns the cursor in the form of journalctl.
func (c Cursor) String() string {
	return fmt.Sprintf("s=%s;i=%x;b=%s;m=%x;t=%x;x=%x", c.SeqnumID, c.Seqnum, c.BootID, c.Monotonic, c.Realtime, c.XorHash)
}

// ParseCursor parses the output of String and of journalctl --show-cursor.
func ParseCursor(s string) (c Cursor, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ";") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "s":
			c.SeqnumID, err = ParseID(value)
		case "i":
			c.Seqnum, err = strconv.ParseUint(value, 16, 64)
		case "b":
			c.BootID, err = ParseID(value)
		case "m":
			c.Monotonic, err = strconv.ParseUint(value, 16, 64)
		case "t":
			c.Realtime, err = strconv.ParseUint(value, 16, 64)
		case "x":
			c.XorHash, err = strconv.ParseUint(value, 16, 64)
		}
		if err != nil {
			return Cursor{}, fmt.Errorf("cannot parse cursor %q: %w", s, err)
		}
		seen[key] = true
	}
	for _, key := range []string{"s", "i", "b", "m", "t"} {
		if !seen[key] {
			return Cursor{}, fmt.Errorf("cannot parse cursor %q: it has no %s=", s, key)
		}
	}
	return c, nil
}

// isBefore reports whether a precedes b in a merged journal. Entries of one
// sequence are ordered by their numbers, and entries of one boot by the monotonic
// clock.
func isBefore(a, b Cursor) bool {
	switch {
	case a.SeqnumID == b.SeqnumID:
		return a.Seqnum < b.Seqnum
	case a.BootID == b.BootID && a.Monotonic != b.Monotonic:
		return a.Monotonic < b.Monotonic
	}
	return a.Realtime < b.Realtime
}

// twins reports whether a and b are copies of one entry: journald copies entries
// from /run to /var and gives the copies new numbers.
func twins(a, b Cursor) bool {
	return a.BootID == b.BootID && a.Monotonic == b.Monotonic && a.Realtime == b.Realtime && a.XorHash == b.XorHash
}
