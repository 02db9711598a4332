package journalfile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Features that a reader must know, by their bit in the header.
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
	stateArchived = 2 // nobody writes to it any more
)

// Types of objects.
const (
	typeData       = 1
	typeEntry      = 3
	typeEntryArray = 6
)

// Sizes of what comes before the items or the payload of objects.
const (
	headerSize      = 208 // all that we need; newer files have more
	objectSize      = 16
	entrySize       = 64
	entryArraySize  = 24
	dataSize        = 64
	dataSizeCompact = 72
)

// Bounds against damaged sizes. An entry has up to 1024 fields.
const (
	maxEntry = 1 << 20
	maxValue = 16 << 20 // the rest of a longer field is cut off
)

var errSignature = errors.New("not a journal file: it does not begin with LPKSHHRH")

// Errors of files that are not complete yet: journald has created them and not
// written the header, or somebody copies them.
var (
	errEmpty = errors.New("the file has no header yet")
	errShort = errors.New("the file is shorter than its header says")
)

// header is what the reader needs of a file's header.
type header struct {
	incompatible uint32
	state        byte
	file         ID
	seqnum       ID // of the sequence
	size         uint64
	arena        uint64 // size of what follows the header
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

// damage is what is wrong with the content of a file. Other errors are those of
// the operating system: the content may be fine.
type damage struct{ what string }

func (d *damage) Error() string { return d.what }

func isDamage(err error) bool {
	_, ok := errors.AsType[*damage](err)
	return ok
}

// cursorOf returns the cursor of an entry object of the sequence id.
func cursorOf(id ID, entry []byte) Cursor {
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(entry[at:]) }
	return Cursor{SeqnumID: id, Seqnum: u64(16), Realtime: u64(24), Monotonic: u64(32), BootID: ID(entry[40:56]), XorHash: u64(56)}
}
