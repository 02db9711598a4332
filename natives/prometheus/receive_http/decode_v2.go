package receivehttp

import (
	"errors"
	"fmt"

	"github.com/prometheus/common/model"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/wire"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// decodeV2 decodes a Request of remote write 2.0.
//
//	Request { repeated string symbols = 4; repeated TimeSeries timeseries = 5 }
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/
func (d *decoder) decodeV2(body []byte) error {
	d.v2 = true
	// Senders may write fields in any order, but symbols are needed first.
	for _, wanted := range []int32{4, 5} {
		c := wire.Read(body)
		for c.More() {
			if err := d.next(); err != nil {
				return err
			}
			num, typ := c.Field()
			if num != 4 && num != 5 {
				c.Skip(typ)
				continue
			}
			c.Want(typ, wire.Bytes)
			b := c.Bytes()
			if !c.OK() || num != wanted {
				continue
			}
			var err error
			if num == 4 {
				d.symbols, err = d.appendPart(d.symbols, b)
			} else {
				err = d.seriesV2(b)
			}
			if err != nil {
				return err
			}
		}
		if err := c.Err("the request"); err != nil {
			return err
		}
	}
	d.placeOrphans()
	return nil
}

// seriesV2 decodes
//
//	TimeSeries { repeated uint32 labels_refs = 1; repeated Sample samples = 2;
//	             repeated Histogram histograms = 3; repeated Exemplar exemplars = 4; Metadata metadata = 5 }
func (d *decoder) seriesV2(ts []byte) error {
	from := len(d.t)
	d.histSeen, d.exSeen, d.refs = d.histSeen[:0], d.exSeen[:0], d.refs[:0]
	var m metadataV2
	var err error
	c := wire.Read(ts)
	for c.More() {
		num, typ := c.Field()
		switch num {
		case 1:
			d.refs = c.Uint32s(d.refs, typ)
		case 2:
			c.Want(typ, wire.Bytes)
			if err := d.sample(c.Bytes()); err != nil {
				return err
			}
		case 3:
			c.Want(typ, wire.Bytes)
			if d.histSeen, err = d.appendPart(d.histSeen, c.Bytes()); err != nil {
				return err
			}
		case 4:
			c.Want(typ, wire.Bytes)
			if d.exSeen, err = d.appendPart(d.exSeen, c.Bytes()); err != nil {
				return err
			}
		case 5:
			c.Want(typ, wire.Bytes)
			if err := m.read(c.Bytes()); err != nil {
				return err
			}
		default:
			c.Skip(typ)
		}
	}
	if err := c.Err("a series"); err != nil {
		return err
	}
	s, bad, err := d.seriesOfRefs(&m)
	if err != nil {
		return err
	}
	for _, b := range d.histSeen {
		if err := d.unpack(b); err != nil {
			return err
		}
		var h writev2.Histogram
		if err := h.Unmarshal(b); err != nil {
			return fmt.Errorf("%w: a histogram is broken", wire.ErrMessage)
		}
		row := batch.Histogram{}
		if h.IsFloatHistogram() {
			row.Float = h.ToFloatHistogram()
		} else {
			row.Int = h.ToIntHistogram()
		}
		if err := d.histogram(s, row, h.Timestamp, h.StartTimestamp); err != nil {
			return err
		}
	}
	if err := d.exemplarsV2(s, len(d.t) > from); err != nil {
		return err
	}
	if s != nil && len(d.t) == from && len(d.histSeen) == 0 && len(d.exSeen) == 0 {
		d.problems.Add("series %s has no sample, histogram or exemplar", shown{s})
	}
	d.finish(s, bad, from)
	return nil
}

// metadataV2 is
//
//	Metadata { MetricType type = 1; uint32 help_ref = 3; uint32 unit_ref = 4 }
type metadataV2 struct {
	typ        int32
	help, unit uint32
}

func (m *metadataV2) read(b []byte) error {
	c := wire.Read(b)
	for c.More() {
		num, typ := c.Field()
		if num != 1 && num != 3 && num != 4 {
			c.Skip(typ)
			continue
		}
		c.Want(typ, wire.Varint)
		v := c.Varint()
		switch num {
		case 1:
			m.typ = int32(v)
		case 3:
			m.help = uint32(v)
		case 4:
			m.unit = uint32(v)
		}
	}
	return c.Err("metadata")
}

var metricTypes = [...]model.MetricType{
	model.MetricTypeUnknown, model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram,
	model.MetricTypeGaugeHistogram, model.MetricTypeSummary, model.MetricTypeInfo, model.MetricTypeStateset,
}

// metricType converts the number of a type, which is the same in both versions.
func metricType(n int32) model.MetricType {
	if n < 0 || int(n) >= len(metricTypes) {
		return model.MetricTypeUnknown
	}
	return metricTypes[n]
}

// symbol returns the symbol for a reference.
func (d *decoder) symbol(ref uint32) ([]byte, bool) {
	if uint64(ref) >= uint64(len(d.symbols)) {
		return nil, false
	}
	return d.symbols[ref], true
}

// maxLabelBytes limits the labels of a series of 2.0, because a few bytes of
// references expand to symbols of any length. The labels of 1.0 are in the body.
const maxLabelBytes = 1 << 20

// maxExpanded is the maximum size of the labels of all series of a 2.0 request,
// as a multiple of max_body_size. They are copied and hashed for each series.
const maxExpanded = 16

// errExpanded means that they exceed the limit.
var errExpanded = errors.New("the labels of its series take too much")

// seriesOfRefs returns the series for d.refs, or the reason why it is not
// accepted.
func (d *decoder) seriesOfRefs(m *metadataV2) (*batch.Series, *badSeries, error) {
	bad := func(format string, args ...any) (*batch.Series, *badSeries, error) {
		return nil, &badSeries{reason: "invalid_labels", refuse: true, err: fmt.Errorf(format, args...)}, nil
	}
	if len(d.refs)%2 != 0 {
		return bad("a series has a label name without a value: %d labels_refs", len(d.refs))
	}
	some := 0 // number of labels with a value
	d.region = d.region[:0]
	for i := 0; i < len(d.refs); i += 2 {
		name, ok := d.symbol(d.refs[i])
		value, ok2 := d.symbol(d.refs[i+1])
		if !ok || !ok2 {
			return bad("labels_refs %d and %d of a series are not both in the symbols table, which has %d", d.refs[i], d.refs[i+1], len(d.symbols))
		}
		if len(d.region)+len(name)+len(value) > maxLabelBytes {
			return bad("the labels of a series take more than %d bytes", maxLabelBytes)
		}
		if over := d.limits.exceeded(len(name), len(value)); over {
			return nil, d.limits.check([]batch.Label{{Name: string(name), Value: string(value)}}), nil
		}
		if len(value) > 0 {
			some++
		}
		d.region = batch.AppendLabel(d.region, name, value)
	}
	if d.expanded += int64(len(d.region)); d.expanded > maxExpanded*int64(d.limits.MaxBodySize) {
		return nil, nil, errExpanded
	}
	if n := d.limits.LabelLimit; n > 0 && some > n {
		if err := d.parseLabels(d.region); err != nil {
			return nil, nil, err
		}
		return nil, d.limits.tooMany(d.labels, some), nil
	}
	help, ok := d.symbol(m.help)
	unit, ok2 := d.symbol(m.unit)
	if !ok || !ok2 {
		return bad("help_ref %d or unit_ref %d of a series is not in the symbols table, which has %d", m.help, m.unit, len(d.symbols))
	}
	typ := metricType(m.typ)
	var s *batch.Series
	if d.typed && (typ != model.MetricTypeUnknown || len(unit) > 0) {
		d.labels = d.withType(d.labels[:0], typ, string(unit))
		s = d.known.lookup(batch.AppendLabels(d.region[:0], d.labels), d.now)
	} else {
		s = d.known.lookup(d.region, d.now)
		d.labels = d.labels[:0]
	}
	if s == nil {
		if len(d.labels) == 0 {
			// The region was created above, so it is valid.
			if err := d.parseLabels(d.region); err != nil {
				return nil, nil, err
			}
		}
		var b *badSeries
		var err error
		if s, b, err = d.newSeries(d.labels); b != nil || err != nil {
			if b != nil {
				b.refuse = true // 2.0 can report partial writes
			}
			return nil, b, err
		}
	}
	if d.meta {
		return s, nil, d.describe(s, m, help, unit)
	}
	return s, nil, nil
}

// describe sets the metadata of s to the metadata in the request, unless it is
// empty. Series with the same references share it, because a family has many
// series.
func (d *decoder) describe(s *batch.Series, m *metadataV2, help, unit []byte) error {
	typ := metricType(m.typ)
	if typ == model.MetricTypeUnknown && len(help) == 0 && len(unit) == 0 {
		return nil
	}
	if old := s.Meta(); old != nil && old.Type == typ && old.Help == string(help) && old.Unit == string(unit) {
		return nil
	}
	out := d.metas[*m]
	if out == nil {
		if !d.reserve(metaBytes) {
			return errBusy
		}
		if d.metas == nil {
			d.metas, d.texts = map[metadataV2]*batch.Metadata{}, map[uint32]string{}
		}
		out = &batch.Metadata{Type: typ, Help: d.text(m.help), Unit: d.text(m.unit)}
		d.metas[*m] = out
	}
	s.SetMeta(out)
	return nil
}

// metaBytes is the memory for metadata in addition to its texts, which are
// limited by the body.
const metaBytes = 200

// text returns a symbol as a string, which is created only once.
func (d *decoder) text(ref uint32) string {
	s, ok := d.texts[ref]
	if !ok {
		s = string(d.symbols[ref])
		d.texts[ref] = s
	}
	return s
}

// withType appends the labels of d.refs, with __type__ and __unit__ from the
// metadata instead of those in the request.
func (d *decoder) withType(dst []batch.Label, typ model.MetricType, unit string) []batch.Label {
	for i := 0; i < len(d.refs); i += 2 {
		name := string(d.symbols[d.refs[i]])
		if name != model.MetricTypeLabel && name != model.MetricUnitLabel {
			dst = append(dst, batch.Label{Name: name, Value: string(d.symbols[d.refs[i+1]])})
		}
	}
	if typ != model.MetricTypeUnknown {
		dst = append(dst, batch.Label{Name: model.MetricTypeLabel, Value: string(typ)})
	}
	if unit != "" {
		dst = append(dst, batch.Label{Name: model.MetricUnitLabel, Value: unit})
	}
	sortLabels(dst)
	return dst
}

// exemplarsV2 decodes the exemplars of the series.
func (d *decoder) exemplarsV2(s *batch.Series, has bool) error {
	for _, b := range d.exSeen {
		if len(b) > maxExemplar {
			d.dropExemplar(valid.ExemplarLength)
			continue
		}
		var pb writev2.Exemplar
		if err := pb.Unmarshal(b); err != nil {
			return fmt.Errorf("%w: an exemplar is broken", wire.ErrMessage)
		}
		if s == nil {
			continue
		}
		e := batch.Exemplar{Value: pb.Value, T: pb.Timestamp, HasT: pb.Timestamp != 0}
		good, size := len(pb.LabelsRefs)%2 == 0, 0
		for i := 0; i+1 < len(pb.LabelsRefs); i += 2 {
			name, ok := d.symbol(pb.LabelsRefs[i])
			value, ok2 := d.symbol(pb.LabelsRefs[i+1])
			good = good && ok && ok2
			if size += len(name) + len(value); size > 4*valid.MaxExemplarRunes {
				continue // exceeds the limit in any case, so it is not copied
			}
			e.Labels = append(e.Labels, batch.Label{Name: string(name), Value: string(value)})
		}
		if !good {
			d.dropExemplar(valid.ExemplarLabels)
			d.problems.Add("an exemplar of series %s has labels_refs that are not in the symbols table", shown{s})
			continue
		}
		if size > 4*valid.MaxExemplarRunes {
			d.dropExemplar(valid.ExemplarLength)
			continue
		}
		d.exemplar(s, e, has)
	}
	return nil
}
