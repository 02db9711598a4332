package batch

import (
	"encoding/binary"
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"
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
	// wire is the labels, sorted by name, as the repeated field 1 of a remote
	// write 1.0 TimeSeries: 0x0a len (0x0a len name 0x12 len value), varint
	// lengths. It is never written again, so the strings cut from it live on.
	wire   string
	hash   uint64
	source *Series
	meta   atomic.Pointer[Metadata]
	id     uint32
	dead   atomic.Bool
}

// NewSeries returns a handle for labels, which it copies. They must be sorted
// by name, names unique, no value empty; Builder brings any set into that form.
func NewSeries(sorted []Label) *Series {
	return newSeries(appendWire(make([]byte, 0, wireSize(sorted)), sorted), nil)
}

// FromLabels returns a handle for Prometheus labels.
func FromLabels(ls labels.Labels) *Series {
	buf := make([]byte, 0, 256)
	ls.Range(func(l labels.Label) {
		if l.Value != "" {
			buf = AppendLabel(buf, l.Name, l.Value)
		}
	})
	return newSeries(append([]byte(nil), buf...), nil)
}

// newSeries takes ownership of wire.
func newSeries(wire []byte, source *Series) *Series {
	s := &Series{
		wire:   unsafe.String(unsafe.SliceData(wire), len(wire)),
		hash:   xxhash.Sum64(wire),
		source: source,
		id:     ids.take(),
	}
	return s
}

// Derive returns a handle for sorted labels that was made from s: its metadata
// is s's until it gets its own, and it counts as released once s is.
func (s *Series) Derive(sorted []Label) *Series {
	return newSeries(appendWire(make([]byte, 0, wireSize(sorted)), sorted), s)
}

// ID is dense: it indexes a Memo. It is unique among the handles that are not
// released; after Release another handle may get it.
func (s *Series) ID() uint32 { return s.id }

// Wire returns the labels in the encoding of remote write 1.0: field 1 of
// TimeSeries, repeated. It never changes.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/
func (s *Series) Wire() string { return s.wire }

// Hash is the xxhash64 of Wire: equal labels, equal hash.
func (s *Series) Hash() uint64 { return s.hash }

// Equal reports whether both have the same labels.
func (s *Series) Equal(o *Series) bool {
	return s == o || (s.hash == o.hash && s.wire == o.wire)
}

// Is reports whether s has the labels of a Wire, of which hash is the xxhash64.
func (s *Series) Is(hash uint64, wire []byte) bool {
	return s.hash == hash && s.wire == string(wire)
}

// Source returns the handle that s was derived from, nil for one made by a
// source. Chains are possible.
func (s *Series) Source() *Series { return s.source }

// Name returns the metric name, "" when it has none.
func (s *Series) Name() string { return s.Label(NameLabel) }

// Label returns the value of a label, "" when it is missing.
func (s *Series) Label(name string) string {
	for w := s.wire; len(w) > 0; {
		// The hottest read there is. A label below 128 bytes has all its
		// lengths in one byte; its value starts 6 bytes and a name in.
		if size := int(w[1]); size < 0x80 {
			if n := int(w[3]); n == len(name) && w[4:4+n] == name {
				return w[6+n : 2+size]
			}
			w = w[2+size:]
			continue
		}
		var n, v string
		n, v, w = cutLabel(w)
		if n == name {
			return v
		}
	}
	return ""
}

// Labels yields the labels in name order, the metric name among them.
func (s *Series) Labels() iter.Seq2[string, string] { return WireLabels(s.wire) }

// WireLabels yields the labels of a Wire in name order, the metric name among
// them.
func WireLabels(wire string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for w := wire; len(w) > 0; {
			var n, v string
			n, v, w = cutLabel(w)
			if !yield(n, v) {
				return
			}
		}
	}
}

// AppendLabels appends the labels in name order to dst.
func (s *Series) AppendLabels(dst []Label) []Label {
	for w := s.wire; len(w) > 0; {
		var l Label
		l.Name, l.Value, w = cutLabel(w)
		dst = append(dst, l)
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
		ids.give(s.id)
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

// cutLabel cuts the first label off a wire string. wire is ours, hence well formed.
func cutLabel(w string) (name, value, rest string) {
	if size := int(w[1]); size < 0x80 { // all its lengths are one byte
		n := int(w[3])
		return w[4 : 4+n], w[6+n : 2+size], w[2+size:]
	}
	size, n := uvarint(w[1:])
	body := w[1+n : 1+n+size]
	rest = w[1+n+size:]
	size, n = uvarint(body[1:])
	name = body[1+n : 1+n+size]
	body = body[1+n+size:]
	_, n = uvarint(body[1:])
	return name, body[1+n:], rest
}

func uvarint(s string) (v, n int) {
	if c := s[0]; c < 0x80 {
		return int(c), 1
	}
	shift := 0
	for i := 0; ; i++ {
		c := s[i]
		v |= int(c&0x7f) << shift
		if c < 0x80 {
			return v, i + 1
		}
		shift += 7
	}
}

func appendWire(dst []byte, sorted []Label) []byte {
	for _, l := range sorted {
		dst = AppendLabel(dst, l.Name, l.Value)
	}
	return dst
}

// AppendLabel appends a label in the form of Wire to dst. Wires have labels
// sorted by name, names unique, no value empty.
func AppendLabel(dst []byte, name, value string) []byte {
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(wireLabelSize(name, value)))
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	dst = append(dst, 0x12)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

func wireLabelSize(name, value string) int {
	return 2 + uvarintSize(len(name)) + len(name) + uvarintSize(len(value)) + len(value)
}

func wireSize(ls []Label) (n int) {
	for _, l := range ls {
		m := wireLabelSize(l.Name, l.Value)
		n += 1 + uvarintSize(m) + m
	}
	return n
}

func uvarintSize(v int) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
