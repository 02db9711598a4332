package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
)

// BinaryOptions supply the data that the binary form does not contain.
type BinaryOptions struct {
	// Source is the Source of the batch.
	Source uint64
	// Handles is the source of the handles. If a known series has metadata in
	// data, its handle gets this metadata.
	Handles *Interner
	Now     time.Time // the time for the Interner
}

// ParseBinary reads the output of AppendBinary. For any data, the memory used
// is bounded by a multiple of its size. Data that is not in binary form is an
// error.
func ParseBinary(data []byte, o BinaryOptions) (*Metrics, error) {
	p := binaryParser{rest: string(data), o: o}
	rows := p.rows(11)
	b := &Metrics{Source: o.Source, Series: make([]*Series, 0, rows), T: make([]int64, 0, rows), V: make([]float64, 0, rows)}
	var metas []*Metadata
	var t int64
	for range rows {
		var meta *Metadata
		switch ref := p.uvarint(); {
		case ref == uint64(len(metas))+1:
			meta = p.meta()
			metas = append(metas, meta)
		case ref > uint64(len(metas)):
			p.fail()
		case ref > 0:
			meta = metas[ref-1]
		}
		s := p.series()
		t += p.varint()
		v := p.bits()
		if p.bad {
			break
		}
		if old := s.Meta(); meta != nil && (old == nil || *old != *meta) {
			s.SetMeta(meta)
		}
		b.Series, b.T, b.V = append(b.Series, s), append(b.T, t), append(b.V, v)
	}
	p.cellsOf(b)
	return b, p.end()
}

// ParseLogsBinary is like ParseBinary, for the output of AppendLogsBinary.
func ParseLogsBinary(data []byte, o BinaryOptions) (*Logs, error) {
	p := binaryParser{rest: string(data), o: o}
	rows := p.rows(4)
	b := &Logs{Source: o.Source, Stream: make([]*Stream, 0, rows), T: make([]int64, 0, rows), Line: make([]string, 0, rows)}
	var streams []*Stream
	var meta []Label
	var t int64
	for range rows {
		ref := p.uvarint()
		if ref == uint64(len(streams))+1 {
			streams = append(streams, p.series())
		}
		if ref == 0 || ref > uint64(len(streams)) {
			p.fail()
		}
		t += p.varint()
		meta = p.line(b, rows, meta)
		if p.bad {
			break
		}
		b.Stream, b.T = append(b.Stream, streams[ref-1]), append(b.T, t)
	}
	return b, p.end()
}

// errBinary is the error for all data that is not in binary form.
var errBinary = errors.New("cannot read a batch: it is not in binary form")

// binaryParser reads until the first error. After it, it returns only zeros.
type binaryParser struct {
	rest string
	o    BinaryOptions
	bad  bool
	err  error // an error that says more than errBinary
}

func (p *binaryParser) fail() { p.bad, p.rest = true, "" }

func (p *binaryParser) end() error {
	if p.err == nil && (p.bad || p.rest != "") {
		p.err = errBinary
	}
	return p.err
}

// rows reads the version and the number of rows. Each row has at least size
// bytes.
func (p *binaryParser) rows(size int) int {
	if v := p.byte(); v != binaryVersion && !p.bad {
		p.err = fmt.Errorf("cannot read a batch in binary form %d: this weir knows %d", v, binaryVersion)
		p.fail()
	}
	return p.count(size)
}

// count reads the number of elements. Each element has at least size bytes.
func (p *binaryParser) count(size int) int {
	n := p.uvarint()
	if n > uint64(len(p.rest)/size) {
		p.fail()
		return 0
	}
	return int(n)
}

func (p *binaryParser) byte() (c byte) {
	if p.rest == "" {
		p.fail()
		return 0
	}
	c, p.rest = p.rest[0], p.rest[1:]
	return c
}

func (p *binaryParser) uvarint() (v uint64) {
	for i := 0; i < len(p.rest) && i < binary.MaxVarintLen64; i++ {
		c := p.rest[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			p.rest = p.rest[i+1:]
			return v
		}
	}
	p.fail()
	return 0
}

func (p *binaryParser) varint() int64 {
	v := p.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (p *binaryParser) int32() int32 {
	v := p.varint()
	if v != int64(int32(v)) {
		p.fail()
	}
	return int32(v)
}

func (p *binaryParser) bits() float64 {
	if len(p.rest) < 8 {
		p.fail()
		return 0
	}
	var b [8]byte
	copy(b[:], p.rest)
	p.rest = p.rest[8:]
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

func (p *binaryParser) str() (s string) {
	n := p.count(1)
	s, p.rest = p.rest[:n], p.rest[n:]
	return s
}

// series reads a wire and returns its handle. An unknown wire is validated
// before it gets a handle.
func (p *binaryParser) series() *Series {
	wire := p.str()
	var room [512]byte
	known := append(room[:0], wire...)
	if s := p.o.Handles.Lookup(Hash(known), known, p.o.Now); s != nil {
		return s
	}
	ls, ok := parseWire(wire)
	if !ok {
		p.fail()
		return nil
	}
	return p.o.Handles.Intern(ls, nil, p.o.Now)
}

// parseWire returns the labels of a wire that weir did not encode. ok is false if it
// is invalid.
func parseWire(wire string) (ls []Label, ok bool) {
	p := binaryParser{rest: wire}
	for p.rest != "" {
		if p.byte() != 0x0a {
			p.fail()
		}
		l := binaryParser{rest: p.str()}
		n := l.byte() == 0x0a
		name := l.str()
		v := l.byte() == 0x12
		value := l.str()
		if !n || !v || l.bad || l.rest != "" || value == "" || len(ls) > 0 && ls[len(ls)-1].Name >= name {
			p.fail()
		}
		ls = append(ls, Label{name, value})
	}
	return ls, !p.bad
}

func (p *binaryParser) meta() *Metadata {
	return &Metadata{Type: model.MetricType(p.str()), Help: p.str(), Unit: p.str(), Family: p.str()}
}

// line reads the metadata and the line of the next row of b, which has rows in all.
// meta is the last metadata that was read; line returns it for the next row.
func (p *binaryParser) line(b *Logs, rows int, meta []Label) []Label {
	n := p.uvarint()
	if n >= 2 {
		meta = p.labels(n - 2)
	}
	if n > 0 && b.Meta == nil && !p.bad {
		b.Meta = make([][]Label, len(b.Line), rows)
	}
	line := p.str()
	if p.bad {
		return nil
	}
	b.Line = append(b.Line, line)
	switch {
	case b.Meta != nil && n == 0:
		b.Meta = append(b.Meta, nil)
	case b.Meta != nil:
		b.Meta = append(b.Meta, meta)
	}
	return meta
}

// labels reads n labels.
func (p *binaryParser) labels(n uint64) (ls []Label) {
	if n > uint64(len(p.rest)/2) {
		p.fail()
		return nil
	}
	ls = make([]Label, 0, n)
	for range n {
		ls = append(ls, Label{p.str(), p.str()})
	}
	return ls
}

// cellsOf reads the sparse columns of b.
func (p *binaryParser) cellsOf(b *Metrics) {
	p.histograms(b)
	p.exemplars(b)
	p.starts(b)
}

// cells reads cells. Each has at least size bytes after its row number.
func (p *binaryParser) cells(rows, size int, read func(row int)) {
	row := uint64(0)
	for range p.count(1 + size) {
		if row += p.uvarint(); row >= uint64(rows) {
			p.fail()
		}
		if p.bad {
			return
		}
		read(int(row))
	}
}

func (p *binaryParser) exemplars(b *Metrics) {
	p.cells(b.Len(), 10, func(row int) {
		e := Exemplar{Row: row, Labels: p.labels(p.uvarint()), Value: p.bits()}
		switch p.byte() {
		case 0:
		case 1:
			e.HasT, e.T = true, p.varint()
		default:
			p.fail()
		}
		b.Exemplars = append(b.Exemplars, e)
	})
}

func (p *binaryParser) starts(b *Metrics) {
	p.cells(b.Len(), 1, func(row int) {
		if n := len(b.Starts); n > 0 && b.Starts[n-1].Row == row {
			p.fail()
		}
		b.Starts = append(b.Starts, Start{Row: row, T: p.varint()})
	})
}

func (p *binaryParser) histograms(b *Metrics) {
	p.cells(b.Len(), 27, func(row int) {
		if n := len(b.Histograms); n > 0 && b.Histograms[n-1].Row == row {
			p.fail()
		}
		h := Histogram{Row: row}
		switch p.byte() {
		case 0:
			h.Int = &histogram.Histogram{CounterResetHint: histogram.CounterResetHint(p.byte())}
			p.shape(&h.Int.Schema, &h.Int.ZeroThreshold, &h.Int.Sum, &h.Int.CustomValues)
			h.Int.Count, h.Int.ZeroCount = p.uvarint(), p.uvarint()
			h.Int.PositiveSpans, h.Int.PositiveBuckets = buckets(p, 1, p.varint)
			h.Int.NegativeSpans, h.Int.NegativeBuckets = buckets(p, 1, p.varint)
		case 1:
			h.Float = &histogram.FloatHistogram{CounterResetHint: histogram.CounterResetHint(p.byte())}
			p.shape(&h.Float.Schema, &h.Float.ZeroThreshold, &h.Float.Sum, &h.Float.CustomValues)
			h.Float.Count, h.Float.ZeroCount = p.bits(), p.bits()
			h.Float.PositiveSpans, h.Float.PositiveBuckets = buckets(p, 8, p.bits)
			h.Float.NegativeSpans, h.Float.NegativeBuckets = buckets(p, 8, p.bits)
		default:
			p.fail()
		}
		b.Histograms = append(b.Histograms, h)
	})
}

func (p *binaryParser) shape(schema *int32, zero, sum *float64, custom *[]float64) {
	*schema, *zero, *sum = p.int32(), p.bits(), p.bits()
	*custom = counts(p, 8, p.bits)
}

// buckets reads one side of a histogram. It does not check that there are as
// many buckets as the spans require, because the batch was accepted before.
func buckets[N any](p *binaryParser, size int, one func() N) (spans []histogram.Span, ns []N) {
	for range p.count(2) {
		offset, length := p.int32(), p.uvarint()
		if length > math.MaxUint32 {
			p.fail()
		}
		spans = append(spans, histogram.Span{Offset: offset, Length: uint32(length)})
	}
	return spans, counts(p, size, one)
}

func counts[N any](p *binaryParser, size int, one func() N) (ns []N) {
	n := p.count(size)
	if n == 0 {
		return nil
	}
	ns = make([]N, 0, n)
	for range n {
		ns = append(ns, one())
	}
	return ns
}
