package journalfile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Features that a reader must support, by their bit in the header.
const (
	flagXZ      = 1 << 0
	flagLZ4     = 1 << 1
	flagKeyed   = 1 << 2
	flagZstd    = 1 << 3
	flagCompact = 1 << 4
	flagsKnown  = flagXZ | flagLZ4 | flagKeyed | flagZstd | flagCompact
)

// States of a file.
const (
	stateOffline  = 0
	stateOnline   = 1
	stateArchived = 2 // not written to any more
)

// Types of objects.
const (
	typeData       = 1
	typeEntry      = 3
	typeEntryArray = 6
)

// Sizes of the parts that precede the items or the payload of objects.
const (
	headerSize      = 208 // the part that is needed; newer files have a longer one
	objectSize      = 16
	entrySize       = 64
	entryArraySize  = 24
	dataSize        = 64
	dataSizeCompact = 72
)

// Limits that protect against damaged sizes. An entry has up to 1024 fields.
const (
	maxEntry = 1 << 20
	maxValue = 16 << 20 // longer values are truncated
)

var errSignature = errors.New("not a journal file: it does not begin with LPKSHHRH")

// Errors for files that are not complete yet: journald has created them but not
// written the header, or they are being copied.
var (
	errEmpty = errors.New("the file has no header yet")
	errShort = errors.New("the file is shorter than its header says")
)

// header contains the required part of a file's header.
type header struct {
	incompatible uint32
	state        byte
	file         ID
	seqnum       ID // ID of the sequence
	size         uint64
	arena        uint64 // size of the part after the header
	entries      uint64
	tailSeqnum   uint64
	headSeqnum   uint64
	entryArray   uint64
	tailRealtime uint64
}

func parseHeader(b []byte) (h header, err error) {
	if len(b) < headerSize || [8]byte(b) == [8]byte{} {
		return h, errEmpty
	}
	if string(b[:8]) != "LPKSHHRH" {
		return h, errSignature
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	h = header{
		incompatible: binary.LittleEndian.Uint32(b[12:]), state: b[16],
		file: ID(b[24:40]), seqnum: ID(b[72:88]), size: u64(88), arena: u64(96),
		entries: u64(152), tailSeqnum: u64(160), headSeqnum: u64(168), entryArray: u64(176), tailRealtime: u64(192),
	}
	if unknown := h.incompatible &^ flagsKnown; unknown != 0 {
		return h, fmt.Errorf("the file has features that this version cannot read (incompatible flags %#x): upgrade weir", unknown)
	}
	if h.size < headerSize {
		return h, &damage{fmt.Sprintf("the header has a size of %d bytes", h.size)}
	}
	return h, nil
}

// damage is an error in the content of a file. Other errors come from the
// operating system, and the content may be intact.
type damage struct{ what string }

func (d *damage) Error() string { return d.what }

func isDamage(err error) bool {
	_, ok := errors.AsType[*damage](err)
	return ok
}

// cursorOf returns the cursor of an entry object in the sequence id.
func cursorOf(id ID, entry []byte) Cursor {
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(entry[at:]) }
	return Cursor{SeqnumID: id, Seqnum: u64(16), Realtime: u64(24), Monotonic: u64(32), BootID: ID(entry[40:56]), XorHash: u64(56)}
}
