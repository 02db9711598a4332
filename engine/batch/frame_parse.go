package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/common/model"
)

// errFrame is the error of all frames that are malformed.
var errFrame = errors.New("cannot read a frame: it is malformed")

// FrameDecoder decodes the frames of one FrameEncoder. Frames are not trusted: a
// malformed frame is an error, and the memory used is bounded by the limit and by a
// multiple of the size of the frame. It is not safe for concurrent use.
//
// A series keeps its handle when the dictionary is replaced. The handles of series
// that the new dictionary does not have are released with the next one.
type FrameDecoder struct {
	limit int

	generation uint64
	live       bool // there is a dictionary
	size       int
	series     []*Series
	metas      []*Metadata
	columns    [][]*Series
	previous   map[uint64][]*Series // handles of the previous dictionary, by hash
}

// NewFrameDecoder returns a decoder. limit is that of the encoder.
func NewFrameDecoder(limit int) *FrameDecoder { return &FrameDecoder{limit: limit} }

// Reset drops the dictionary. Frames are refused with ErrFrameReset until the
// encoder begins a new one. Call it also when another encoder follows, for example
// after a connection was lost, so that series keep their handles.
func (d *FrameDecoder) Reset() {
	if len(d.series) > 0 {
		d.releasePrevious()
		d.previous = make(map[uint64][]*Series, len(d.series))
		for _, s := range d.series {
			d.previous[s.Hash()] = append(d.previous[s.Hash()], s)
		}
	}
	d.live, d.size, d.series, d.metas, d.columns = false, 0, nil, nil, nil
}

// Close releases all handles. Batches that contain them stay valid. The decoder
// must not be used afterwards.
func (d *FrameDecoder) Close() {
	d.Reset()
	d.releasePrevious()
}

func (d *FrameDecoder) releasePrevious() {
	for _, same := range d.previous {
		for _, s := range same {
			s.Release()
		}
	}
	d.previous = nil
}

// Metrics decodes a frame of AppendMetrics. It keeps no part of frame. Batches of
// one column of the sender share their column of series. If it returns an error,
// the dictionary is dropped; see Reset.
func (d *FrameDecoder) Metrics(frame []byte) (*Metrics, error) {
	r := frameReader{rest: frame}
	of, column, err := d.head(&r, frameMetrics, 8)
	if err != nil {
		return nil, err
	}
	rows := len(column)
	b := &Metrics{Source: of.Source, Way: of.Way, Series: column, T: r.times(rows)}
	values := r.bytes(8 * rows)
	cells := r.bytes(r.count(1))
	if r.bad || len(r.rest) > 0 {
		return nil, d.refuse(errFrame)
	}
	b.V = make([]float64, rows)
	for i := range b.V {
		b.V[i] = math.Float64frombits(binary.LittleEndian.Uint64(values[8*i:]))
	}
	if len(cells) == 0 {
		return b, nil
	}
	p := binaryParser{rest: string(cells)}
	p.cellsOf(b)
	if p.end() != nil {
		return nil, d.refuse(errFrame)
	}
	for _, e := range b.Exemplars {
		if !sortedLabels(e.Labels) {
			return nil, d.refuse(errFrame)
		}
	}
	return b, nil
}

// Logs is like Metrics, for a frame of AppendLogs. The batch has no Ack.
func (d *FrameDecoder) Logs(frame []byte) (*Logs, error) {
	r := frameReader{rest: frame}
	of, column, err := d.head(&r, frameLogs, 2)
	if err != nil {
		return nil, err
	}
	rows := len(column)
	b := &Logs{Source: of.Source, Way: of.Way, Stream: column, T: r.times(rows), Line: make([]string, 0, rows)}
	if r.bad {
		return nil, d.refuse(errFrame)
	}
	p := binaryParser{rest: string(r.rest)}
	var meta []Label
	for range rows {
		if meta = p.line(b, rows, meta); p.bad || !sortedLabels(meta) {
			return nil, d.refuse(errFrame)
		}
	}
	if p.end() != nil {
		return nil, d.refuse(errFrame)
	}
	return b, nil
}

func (d *FrameDecoder) refuse(err error) error {
	d.Reset()
	return err
}

// head reads a frame up to its column of series. Each row has at least size bytes
// in the frame.
func (d *FrameDecoder) head(r *frameReader, kind byte, size int) (of Origin, column []*Series, err error) {
	if v := r.byte(); v != frameVersion && !r.bad {
		return of, nil, d.refuse(fmt.Errorf("cannot read a frame of version %d: this weir knows %d", v, frameVersion))
	}
	if k := r.byte(); k != kind {
		return of, nil, d.refuse(errFrame)
	}
	generation, fresh := r.uvarint(), r.byte()
	source, way := r.bytes(8), r.bytes(8)
	rows := r.count(size)
	definitions := r.bytes(r.count(1))
	if r.bad || fresh > 1 {
		return of, nil, d.refuse(errFrame)
	}
	of = Origin{binary.LittleEndian.Uint64(source), binary.LittleEndian.Uint64(way)}
	if fresh == 1 {
		d.Reset()
		d.live, d.generation = true, generation
	} else if !d.live || generation != d.generation {
		return of, nil, d.refuse(ErrFrameReset)
	}
	before := d.size
	if len(definitions) > 0 && !d.define(string(definitions), rows) {
		return of, nil, d.refuse(errFrame)
	}
	column = d.column(r, rows)
	if r.bad {
		return of, nil, d.refuse(errFrame)
	}
	if fresh == 0 && d.size > d.limit && d.size > before {
		return of, nil, d.refuse(fmt.Errorf("cannot read a frame: its dictionary has %d bytes, and the limit is %d", d.size, d.limit))
	}
	return of, column, nil
}

// define adds definitions to the dictionary and reports whether they are valid.
func (d *FrameDecoder) define(definitions string, rows int) bool {
	p := binaryParser{rest: definitions}
	list := func(size int, one func()) {
		n := p.count(size)
		if n > 2*rows {
			p.fail()
		}
		for range n {
			if one(); p.bad {
				return
			}
		}
	}
	list(4, func() {
		m := p.meta()
		m = &Metadata{model.MetricType(strings.Clone(string(m.Type))), strings.Clone(m.Help), strings.Clone(m.Unit), strings.Clone(m.Family)}
		d.metas = append(d.metas, m)
		d.size += frameEntry + m.size()
	})
	meta := func() *Metadata {
		ref := p.uvarint()
		if ref > uint64(len(d.metas)) {
			p.fail()
		}
		if ref == 0 || p.bad {
			return nil
		}
		return d.metas[ref-1]
	}
	list(2, func() {
		m := meta()
		ls, ok := parseWire(p.str())
		if !ok {
			p.fail()
		}
		if p.bad {
			return
		}
		s := d.handle(ls)
		if old := s.Meta(); old != m && (old == nil || m == nil || *old != *m) {
			s.SetMeta(m)
		}
		d.series = append(d.series, s)
		d.size += frameEntry + s.WireSize()
	})
	list(2, func() {
		n, m := p.uvarint(), meta()
		if n == 0 || n > uint64(len(d.series)) {
			p.fail()
		}
		if !p.bad {
			d.series[n-1].SetMeta(m)
		}
	})
	return p.end() == nil
}

// handle returns the handle that the labels had in the previous dictionary, or a
// new one. The sender may have two handles with the same labels, so a handle is
// used for one number only.
func (d *FrameDecoder) handle(ls []Label) *Series {
	var room [512]byte
	wire := AppendLabels(room[:0], ls)
	hash := Hash(wire)
	same := d.previous[hash]
	for i, s := range same {
		if s.Is(hash, wire) {
			same[i] = same[len(same)-1]
			if same = same[:len(same)-1]; len(same) == 0 {
				delete(d.previous, hash)
			} else {
				d.previous[hash] = same
			}
			return s
		}
	}
	return fromWire(wire)
}

// column reads the column of series.
func (d *FrameDecoder) column(r *frameReader, rows int) []*Series {
	ref := r.uvarint()
	k := ref / 2
	if r.bad || k > uint64(len(d.columns))+ref%2 || ref == 1 {
		r.fail()
		return nil
	}
	if ref > 0 && ref%2 == 0 {
		c := d.columns[k-1]
		if len(c) != rows {
			r.fail()
		}
		return c
	}
	if rows > len(r.rest) {
		r.fail()
		return nil
	}
	column := make([]*Series, rows)
	n := int64(0)
	for i := range column {
		n += 1 + r.varint()
		if n < 1 || n > int64(len(d.series)) {
			r.fail()
			return nil
		}
		column[i] = d.series[n-1]
	}
	if r.bad || ref == 0 {
		return column
	}
	if k > uint64(len(d.columns)) {
		d.columns = append(d.columns, nil)
		d.size += frameEntry
	}
	d.size += frameCell * (rows - len(d.columns[k-1]))
	d.columns[k-1] = column
	return column
}

// sortedLabels reports whether labels are sorted by unique names.
func sortedLabels(ls []Label) bool {
	for i := 1; i < len(ls); i++ {
		if ls[i-1].Name >= ls[i].Name {
			return false
		}
	}
	return true
}

// frameReader reads until the first error. After it, it returns only zeros. It is
// for the parts of a frame of which nothing is kept; binaryParser keeps strings.
type frameReader struct {
	rest []byte
	bad  bool
}

func (r *frameReader) fail() { r.bad, r.rest = true, nil }

func (r *frameReader) byte() (c byte) {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	c, r.rest = r.rest[0], r.rest[1:]
	return c
}

func (r *frameReader) uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return v
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *frameReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads the number of elements. Each element has at least size bytes.
func (r *frameReader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *frameReader) bytes(n int) (b []byte) {
	if n > len(r.rest) {
		r.fail()
		return nil
	}
	b, r.rest = r.rest[:n], r.rest[n:]
	return b
}

func (r *frameReader) times(rows int) []int64 {
	mode := r.byte()
	if mode > 1 || mode == 1 && rows > len(r.rest) {
		r.fail()
	}
	if r.bad {
		return nil
	}
	ts := make([]int64, rows)
	if mode == 0 {
		t := r.varint()
		for i := range ts {
			ts[i] = t
		}
		return ts
	}
	t := int64(0)
	for i := range ts {
		t += r.varint()
		ts[i] = t
	}
	return ts
}
