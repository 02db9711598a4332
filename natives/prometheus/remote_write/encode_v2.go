package remotewrite

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/engine/batch"
)

// The encoder for the messages of remote write 2.0. A request contains each
// string once, in symbols, and refers to it by its index. The first symbol is "".
//
//	Request    { repeated string symbols = 4; repeated TimeSeries timeseries = 5 }
//	TimeSeries { repeated uint32 labels_refs = 1; repeated Sample samples = 2;
//	             repeated Histogram histograms = 3; repeated Exemplar exemplars = 4;
//	             Metadata metadata = 5 }
//	Sample     { double value = 1; int64 timestamp = 2; int64 start_timestamp = 3 }
//	Metadata   { MetricType type = 1; uint32 help_ref = 3; uint32 unit_ref = 4 }
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/

// symbols assigns a number to every string and every label of the series of an
// endpoint. The labels of a series are looked up once; encoding a label then
// costs one table lookup. Hashing the strings of each sample would cost more than
// the rest of the encoding.
type symbols struct {
	memo batch.Memo[[]uint32] // the label numbers of each series

	mu      sync.Mutex
	ids     map[string]uint32
	numbers map[label]uint32
	known
	settled int // number of strings when the current series were known
}

// known contains strings and labels by their numbers. Existing elements are never
// written again.
type known struct {
	strings []string
	labels  []label
}

// label is a name and a value, as numbers of strings.
type label struct{ name, value uint32 }

func newSymbols() *symbols {
	return &symbols{ids: map[string]uint32{}, numbers: map[label]uint32{}}
}

// labelSymbols returns the numbers of the labels that are sent for a row.
func (y *symbols) labelSymbols(r *row) []uint32 {
	if ns, ok := y.memo.Get(r.series); ok {
		return ns
	}
	ns := make([]uint32, 0, 8)
	y.mu.Lock()
	for name, value := range r.labels() {
		l := label{y.id(name), y.id(value)}
		n, ok := y.numbers[l]
		if !ok {
			n = uint32(len(y.labels))
			y.numbers[l] = n
			y.labels = append(y.labels, l)
		}
		ns = append(ns, n)
	}
	y.mu.Unlock()
	return y.memo.Put(r.series, ns)
}

// id returns the number of a string. The caller holds mu.
func (y *symbols) id(s string) uint32 {
	id, ok := y.ids[s]
	if !ok {
		id = uint32(len(y.strings))
		s = strings.Clone(s) // s is part of the labels of a series, which would all be retained
		y.ids[s] = id
		y.strings = append(y.strings, s)
	}
	return id
}

func (y *symbols) text(s string) uint32 {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.id(s)
}

func (y *symbols) find(s string) (id uint32, ok bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	id, ok = y.ids[s]
	return id, ok
}

func (y *symbols) all() known {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.known
}

// outgrown reports whether most of the strings belong to series that no longer
// exist. It is called every minute.
func (y *symbols) outgrown() bool {
	y.memo.Sweep(nil)
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.settled == 0 {
		y.settled = len(y.strings)
	}
	return len(y.strings) > 2*y.settled+10_000
}

// tableV2 contains the symbols of one open block.
type tableV2 struct {
	y       *symbols
	known          // a copy of those of y, as far as needed
	epoch   uint32 // of the block; slots with another epoch are empty
	slots   []slot // by the number of the string
	pairs   []pair // by the number of the label
	n       uint32 // symbols in the block
	encoded []byte // the symbols, encoded as fields of Request

	local map[string]uint32 // strings of exemplars, which do not repeat

	meta     *batch.Metadata // the metadata that metaForm encodes
	metaForm []byte
}

// slot is the index of a string in the block.
type slot struct{ epoch, ref uint32 }

// pair is the encoded references to the name and value of a label, as in
// labels_refs. A block has fewer than 2^28 symbols, so they take at most eight
// bytes.
type pair struct {
	refs  uint64 // n bytes, little endian
	epoch uint32
	n     uint32
}

var tables = sync.Pool{New: func() any { return &tableV2{local: map[string]uint32{}} }}

// newTable returns the table of a new block.
func newTable(y *symbols) *tableV2 {
	t := tables.Get().(*tableV2)
	t.epoch++
	if t.epoch == 0 {
		clear(t.slots)
		clear(t.pairs)
		t.epoch = 1
	}
	t.y, t.known = y, y.all()
	t.encoded = append(t.encoded[:0], 0x22, 0)
	t.n = 1
	return t
}

// maxPooledSlots limits the memory that a table retains between blocks to 24 MiB.
const maxPooledSlots = 1 << 20

func (t *tableV2) free() {
	t.y, t.known, t.meta = nil, known{}, nil
	clear(t.local)
	if cap(t.encoded) > maxPooledBuffer {
		t.encoded = nil
	}
	if len(t.slots) > maxPooledSlots || len(t.pairs) > maxPooledSlots {
		t.slots, t.pairs = nil, nil
	}
	tables.Put(t)
}

// put appends a symbol.
func (t *tableV2) put(s string) uint32 {
	t.encoded = append(t.encoded, 0x22)
	t.encoded = appendUvarint(t.encoded, uint64(len(s)))
	t.encoded = append(t.encoded, s...)
	t.n++
	return t.n - 1
}

// ref returns the index in the block of the string with number id.
func (t *tableV2) ref(id uint32) uint32 {
	if int(id) < len(t.slots) && t.slots[id].epoch == t.epoch {
		return t.slots[id].ref
	}
	if int(id) >= len(t.strings) {
		t.known = t.y.all()
	}
	if n := len(t.strings); n > len(t.slots) {
		t.slots = append(t.slots, make([]slot, n-len(t.slots))...)
	}
	ref := uint32(0)
	if s := t.strings[id]; s != "" {
		ref = t.put(s)
	}
	t.slots[id] = slot{t.epoch, ref}
	return ref
}

// pair returns the references to a label that the block does not contain yet.
func (t *tableV2) pair(number uint32) pair {
	if int(number) >= len(t.labels) {
		t.known = t.y.all()
	}
	if n := len(t.labels); n > len(t.pairs) {
		t.pairs = append(t.pairs, make([]pair, n-len(t.pairs))...)
	}
	l := t.labels[number]
	var buf [16]byte
	refs := appendUvarint(appendUvarint(buf[:0], uint64(t.ref(l.name))), uint64(t.ref(l.value)))
	p := pair{binary.LittleEndian.Uint64(buf[:]), t.epoch, uint32(len(refs))}
	t.pairs[number] = p
	return p
}

// appendRefs appends the content of labels_refs.
func (t *tableV2) appendRefs(dst []byte, numbers []uint32) []byte {
	at := len(dst)
	buf := slices.Grow(dst, 8*len(numbers)+8)
	buf = buf[:cap(buf)]
	for _, number := range numbers {
		var p pair
		if int(number) < len(t.pairs) && t.pairs[number].epoch == t.epoch {
			p = t.pairs[number]
		} else {
			p = t.pair(number)
		}
		binary.LittleEndian.PutUint64(buf[at:], p.refs)
		at += int(p.n)
	}
	return buf[:at]
}

func (t *tableV2) refLocal(s string) uint32 {
	if s == "" {
		return 0
	}
	ref, ok := t.local[s]
	if !ok {
		if id, known := t.y.find(s); known {
			return t.ref(id)
		}
		ref = t.put(s)
		t.local[s] = ref
	}
	return ref
}

// append appends the TimeSeries of a row to dst. Its metadata is included if
// withMeta is true.
func (t *tableV2) append(dst []byte, r *row, withMeta bool) ([]byte, error) {
	numbers := t.y.labelSymbols(r)
	dst = append(dst, 0x2a, 0, 0x0a, 0)
	start := len(dst)
	dst = setLength(t.appendRefs(dst, numbers), start)
	var err error
	if r.h == nil {
		dst = appendSampleV2(dst, r)
	} else {
		var pb writev2.Histogram
		if r.h.Int != nil {
			pb = writev2.FromIntHistogram(r.start, r.t, r.h.Int)
		} else {
			pb = writev2.FromFloatHistogram(r.start, r.t, r.h.Float)
		}
		if dst, err = appendMessage(dst, 0x1a, &pb); err != nil {
			return dst, err
		}
	}
	for i := range r.exemplars {
		e := &r.exemplars[i]
		pb := writev2.Exemplar{Value: e.Value, Timestamp: r.exemplarTime(e)}
		for _, l := range e.Labels {
			pb.LabelsRefs = append(pb.LabelsRefs, t.refLocal(l.Name), t.refLocal(l.Value))
		}
		if dst, err = appendMessage(dst, 0x22, &pb); err != nil {
			return dst, err
		}
	}
	if withMeta {
		dst = t.appendMeta(dst, r.series.Meta())
	}
	return setLength(dst, start-2), nil
}

// appendSampleV2 appends field 2 of a TimeSeries. The value 0 is omitted, but -0
// is not.
func appendSampleV2(dst []byte, r *row) []byte {
	dst = append(dst, 0x12, 0)
	start := len(dst)
	if bits := math.Float64bits(r.v); bits != 0 {
		dst = append(dst, 0x09)
		dst = binary.LittleEndian.AppendUint64(dst, bits)
	}
	dst = append(dst, 0x10)
	dst = appendUvarint(dst, uint64(r.t))
	if r.start != 0 {
		dst = append(dst, 0x18)
		dst = appendUvarint(dst, uint64(r.start))
	}
	dst[start-1] = byte(len(dst) - start) // at most 31
	return dst
}

// appendMeta appends field 5 of a TimeSeries. The series of a family follow each
// other, so the last encoding is cached.
func (t *tableV2) appendMeta(dst []byte, m *batch.Metadata) []byte {
	if m == nil {
		return dst
	}
	if m != t.meta {
		form := append(t.metaForm[:0], 0x2a, 0)
		if typ := writev2.FromMetadataType(m.Type); typ != 0 {
			form = append(form, 0x08, byte(typ))
		}
		if m.Help != "" {
			form = append(form, 0x18)
			form = appendUvarint(form, uint64(t.ref(t.y.text(m.Help))))
		}
		if m.Unit != "" {
			form = append(form, 0x20)
			form = appendUvarint(form, uint64(t.ref(t.y.text(m.Unit))))
		}
		form[1] = byte(len(form) - 2)
		t.meta, t.metaForm = m, form
	}
	if len(t.metaForm) == 2 {
		return dst
	}
	return append(dst, t.metaForm...)
}

// setLength writes the length of the text that begins at start into the byte that
// was reserved before it.
func setLength(dst []byte, start int) []byte {
	n := len(dst) - start
	if n < 0x80 {
		dst[start-1] = byte(n)
		return dst
	}
	more := uvarintSize(uint64(n)) - 1
	var room [8]byte
	dst = append(dst, room[:more]...)
	copy(dst[start+more:], dst[start:start+n])
	appendUvarint(dst[:start-1], uint64(n))
	return dst
}
