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

// Label is one name and value of a series.
type Label struct{ Name, Value string }

// MetricType is a metric type in Prometheus's words, such as counter.
type MetricType = model.MetricType

// Metadata describes a metric family. It is immutable once attached.
type Metadata struct {
	// Type is a Prometheus metric type; "" and "unknown" mean not known.
	Type model.MetricType
	Help string
	Unit string
	// Family is the name of the metric family where the source named it, ""
	// otherwise. It is not always to be told from a series: the family of
	// foo_total is foo in OpenMetrics and foo_total elsewhere.
	Family string
}

// Series is the handle of one series: an immutable set of labels with a dense
// ID. Handles are compared by pointer on the hot path; labels by Equal.
//
// All methods are safe for concurrent use.
type Series struct {
	// form is labels, and where among them those of tags belong. Series of other
	// targets may have the same one.
	form   *form
	tags   *Tags // nil when all labels are in form
	hash   uint64
	source *Series
	meta   atomic.Pointer[Metadata]
	id     uint32
	dead   atomic.Bool
}

// NewSeries returns a handle for labels, which it copies. They must be sorted
// by name, names unique, no value empty; Builder brings any set into that form.
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

// fromWire returns a handle for the labels of a wire, which it copies.
func fromWire(wire []byte) *Series {
	if len(wire) == 0 {
		return NewSeries(nil)
	}
	b := appendFormHead(make([]byte, 0, formSize(0, len(wire))), nil, len(wire))
	return &Series{form: formOf(append(b, wire...)), hash: Hash(wire), id: ids.acquireID()}
}

// Derive returns a handle for sorted labels that was made from s: its metadata
// is s's until it gets its own, and it counts as released once s is.
func (s *Series) Derive(sorted []Label) *Series { return newSeries(sorted, s) }

// ID is dense: it indexes a Memo. It is unique among the handles that are not
// released; after Release another handle may get it.
func (s *Series) ID() uint32 { return s.id }

// AppendWire appends the labels in the encoding of remote write 1.0: field 1 of
// TimeSeries, repeated. It is always the same for a series.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/
func (s *Series) AppendWire(dst []byte) []byte {
	p := s.pieces()
	return p.appendTo(dst)
}

// AppendSized appends, as a varint, how many bytes AppendWire appends and extra
// more, and then what AppendWire does.
func (s *Series) AppendSized(dst []byte, extra int) []byte {
	p := s.pieces()
	return p.appendTo(binary.AppendUvarint(dst, uint64(p.size()+extra)))
}

// WireSize is how many bytes AppendWire appends.
func (s *Series) WireSize() int {
	p := s.pieces()
	return p.size()
}

// Empty reports whether there are no labels.
func (s *Series) Empty() bool { return s.form == noLabels }

// Hash is the Hash of what AppendWire appends: equal labels, equal hash, within one
// process. Do not store it.
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

// Is reports whether wire, of which hash is the Hash, is what AppendWire appends.
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

// Source returns the handle that s was derived from, nil for one made by a
// source. Chains are possible.
func (s *Series) Source() *Series { return s.source }

// Name returns the metric name, "" when it has none.
func (s *Series) Name() string { return s.Label(NameLabel) }

// Label returns the value of a label, "" when it is missing.
func (s *Series) Label(name string) string {
	_, own := s.form.parts()
	v := wireValue(own, name)
	if v == "" && s.tags != nil {
		return wireValue(s.tags.wire, name)
	}
	return v
}

// Labels yields the labels in name order, the metric name among them.
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

// PromLabels returns the labels as Prometheus has them. It allocates.
func (s *Series) PromLabels() labels.Labels {
	b := labels.NewScratchBuilder(16)
	for n, v := range s.Labels() {
		b.Add(n, v)
	}
	return b.Labels()
}

// String returns the series in text form, for messages and tests.
func (s *Series) String() string { return string(AppendSeries(nil, s)) }

// Meta returns the metadata, nil when none is known.
func (s *Series) Meta() *Metadata {
	for ; s != nil; s = s.source {
		if m := s.meta.Load(); m != nil {
			return m
		}
	}
	return nil
}

// SetMeta attaches metadata. Only the maker of the handle calls it.
func (s *Series) SetMeta(m *Metadata) { s.meta.Store(m) }

// Release gives the ID back. The maker calls it once nothing more will be sent
// for the series (its staleness marker was accepted); batches that still hold
// the handle stay valid. Further calls do nothing.
func (s *Series) Release() {
	if s.dead.CompareAndSwap(false, true) {
		ids.releaseID(s.id)
	}
}

// Released reports whether the handle, or one it was derived from, was released.
func (s *Series) Released() bool {
	for ; s != nil; s = s.source {
		if s.dead.Load() {
			return true
		}
	}
	return false
}
