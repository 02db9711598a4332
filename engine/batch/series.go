package batch

import (
	"encoding/binary"
	"iter"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// NameLabel is the label that holds a metric's name.
const NameLabel = "__name__"

// Label is the name and value of one label.
type Label struct{ Name, Value string }

// MetricType is a metric type in Prometheus's terms, such as counter.
type MetricType = model.MetricType

// Metadata describes a metric family. It is immutable once attached.
type Metadata struct {
	// Type is a Prometheus metric type. "" and "unknown" mean that it is not
	// known.
	Type model.MetricType
	Help string
	Unit string
	// Family is the name of the metric family if the source named it, and ""
	// otherwise. It cannot always be derived from the name of a series: the family
	// of foo_total is foo in OpenMetrics and foo_total in other formats.
	Family string
}

// Series is the handle of one series: an immutable set of labels with a dense
// ID. Compare handles by pointer on the hot path, and labels with Equal.
//
// All methods are safe for concurrent use.
type Series struct {
	// form contains labels and the positions of the labels of tags among them.
	// Series of several targets may share it.
	form   *form
	tags   *Tags // nil if all labels are in form
	hash   uint64
	source *Series
	meta   atomic.Pointer[Metadata]
	id     uint32
	dead   atomic.Bool
}

// NewSeries returns a handle for labels, which it copies. They must be sorted
// by name, with unique names and without empty values. Builder converts any set
// into that form.
func NewSeries(sorted []Label) *Series { return newSeries(sorted, nil) }

// FromLabels returns a handle for Prometheus labels.
func FromLabels(ls labels.Labels) *Series {
	var room [512]byte
	wire := room[:0]
	ls.Range(func(l labels.Label) {
		if l.Value != "" {
			wire = AppendLabel(wire, l.Name, l.Value)
		}
	})
	return fromWire(wire)
}

func newSeries(sorted []Label, source *Series) *Series {
	n := wireSize(sorted)
	b := appendFormHead(make([]byte, 0, formSize(0, n)), nil, n)
	at := len(b)
	b = AppendLabels(b, sorted)
	s := &Series{form: formOf(b), hash: Hash(b[at:]), source: source, id: ids.acquireID()}
	if n == 0 {
		s.form = noLabels
	}
	return s
}

// fromWire returns a handle for the labels of wire, which it copies.
func fromWire(wire []byte) *Series {
	if len(wire) == 0 {
		return NewSeries(nil)
	}
	b := appendFormHead(make([]byte, 0, formSize(0, len(wire))), nil, len(wire))
	return &Series{form: formOf(append(b, wire...)), hash: Hash(wire), id: ids.acquireID()}
}

// Derive returns a handle for sorted labels that is derived from s. It has the
// metadata of s until it gets its own, and counts as released as soon as s is
// released.
func (s *Series) Derive(sorted []Label) *Series { return newSeries(sorted, s) }

// ID returns a dense ID, which indexes a Memo. It is unique among the handles
// that are not released. After Release, another handle may get it.
func (s *Series) ID() uint32 { return s.id }

// AppendWire appends the labels in the encoding of remote write 1.0: field 1 of
// TimeSeries, repeated. The encoding of a series never changes.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/
func (s *Series) AppendWire(dst []byte) []byte {
	p := s.pieces()
	return p.appendTo(dst)
}

// AppendSized appends WireSize()+extra as a varint, followed by the output of
// AppendWire.
func (s *Series) AppendSized(dst []byte, extra int) []byte {
	p := s.pieces()
	return p.appendTo(binary.AppendUvarint(dst, uint64(p.size()+extra)))
}

// WireSize returns the number of bytes that AppendWire appends.
func (s *Series) WireSize() int {
	p := s.pieces()
	return p.size()
}

// Empty reports whether there are no labels.
func (s *Series) Empty() bool { return s.form == noLabels }

// Hash returns the Hash of the output of AppendWire. Within one process, equal
// labels have equal hashes. Do not store it.
func (s *Series) Hash() uint64 { return s.hash }

// Equal reports whether both have the same labels.
func (s *Series) Equal(o *Series) bool {
	if s == o || s.hash != o.hash {
		return s == o
	}
	if s.form == o.form && s.tags == o.tags {
		return true
	}
	var room [512]byte
	return s.Is(o.hash, o.AppendWire(room[:0]))
}

// Is reports whether AppendWire appends wire. hash must be Hash(wire).
func (s *Series) Is(hash uint64, wire []byte) bool {
	if s.hash != hash || s.WireSize() != len(wire) {
		return false
	}
	p := s.pieces()
	for len(wire) > 0 {
		own, tags := p.next()
		n := len(own) + len(tags)
		if string(wire[:len(own)]) != own || string(wire[len(own):n]) != tags {
			return false
		}
		wire = wire[n:]
	}
	return true
}

// Source returns the handle that s was derived from, or nil if a source created
// it. The returned handle may be a derived handle too.
func (s *Series) Source() *Series { return s.source }

// Name returns the metric name, or "" if it has none.
func (s *Series) Name() string { return s.Label(NameLabel) }

// Label returns the value of a label, or "" if the label is missing.
func (s *Series) Label(name string) string {
	_, own := s.form.parts()
	v := wireValue(own, name)
	if v == "" && s.tags != nil {
		return wireValue(s.tags.wire, name)
	}
	return v
}

// Labels yields the labels in name order, including the metric name.
func (s *Series) Labels() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		p := s.pieces()
		for own, tags := p.next(); own != "" || tags != ""; own, tags = p.next() {
			if !yieldLabels(own, yield) || !yieldLabels(tags, yield) {
				return
			}
		}
	}
}

// AppendLabels appends the labels in name order to dst.
func (s *Series) AppendLabels(dst []Label) []Label {
	p := s.pieces()
	for own, tags := p.next(); own != "" || tags != ""; own, tags = p.next() {
		dst = appendCut(appendCut(dst, own), tags)
	}
	return dst
}

// PromLabels returns the labels in Prometheus's type. It allocates.
func (s *Series) PromLabels() labels.Labels {
	b := labels.NewScratchBuilder(16)
	for n, v := range s.Labels() {
		b.Add(n, v)
	}
	return b.Labels()
}

// String returns the series in text form, for messages and tests.
func (s *Series) String() string { return string(AppendSeries(nil, s)) }

// Meta returns the metadata, or nil if none is known.
func (s *Series) Meta() *Metadata {
	for ; s != nil; s = s.source {
		if m := s.meta.Load(); m != nil {
			return m
		}
	}
	return nil
}

// SetMeta attaches metadata. Only the creator of the handle may call it.
func (s *Series) SetMeta(m *Metadata) { s.meta.Store(m) }

// Release frees the ID. The creator calls it when nothing more will be sent for
// the series, after its staleness marker was accepted. Batches that still
// contain the handle stay valid. Further calls do nothing.
func (s *Series) Release() {
	if s.dead.CompareAndSwap(false, true) {
		ids.releaseID(s.id)
	}
}

// Released reports whether the handle, or a handle that it was derived from,
// was released.
func (s *Series) Released() bool {
	for ; s != nil; s = s.source {
		if s.dead.Load() {
			return true
		}
	}
	return false
}
