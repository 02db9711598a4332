package receivehttp

import (
	"fmt"

	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/wire"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// decodeV1 decodes a WriteRequest of remote write 1.0.
//
//	WriteRequest { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3 }
func (d *decoder) decodeV1(body []byte) error {
	d.v2 = false
	c := wire.Read(body)
	families := map[string]batch.Metadata{}
	for c.More() {
		if err := d.next(); err != nil {
			return err
		}
		num, typ := c.Field()
		switch num {
		case 1:
			c.Want(typ, wire.Bytes)
			if ts := c.Bytes(); c.OK() {
				if err := d.seriesV1(ts); err != nil {
					return err
				}
			}
		case 3:
			c.Want(typ, wire.Bytes)
			name, m, err := metadataV1(c.Bytes())
			if err != nil {
				return err
			}
			if d.meta && name != "" && len(families) < maxFamilies {
				families[name] = m
			}
		default:
			c.Skip(typ)
		}
	}
	if err := c.Err("the request"); err != nil {
		return err
	}
	if len(families) > 0 {
		d.known.setMetadata(families, d.now)
	}
	d.placeOrphans()
	return nil
}

// seriesV1 decodes
//
//	TimeSeries { repeated Label labels = 1; repeated Sample samples = 2;
//	             repeated Exemplar exemplars = 3; repeated Histogram histograms = 4 }
func (d *decoder) seriesV1(ts []byte) error {
	from := len(d.t)
	d.histSeen, d.exSeen = d.histSeen[:0], d.exSeen[:0]
	start, end := 0, 0 // of the label fields, which are usually contiguous
	pieces := false
	var err error
	c := wire.Read(ts)
	for c.More() {
		at := c.Offset()
		num, typ := c.Field()
		switch num {
		case 1:
			c.Want(typ, wire.Bytes)
			c.Bytes()
			switch {
			case start == end:
				start, end = at, c.Offset()
			case end == at && !pieces:
				end = c.Offset()
			default:
				if !pieces {
					d.region, pieces = append(d.region[:0], ts[start:end]...), true
				}
				d.region = append(d.region, ts[at:c.Offset()]...)
			}
		case 2:
			c.Want(typ, wire.Bytes)
			if err := d.sample(c.Bytes()); err != nil {
				return err
			}
		case 3:
			c.Want(typ, wire.Bytes)
			if d.exSeen, err = d.appendPart(d.exSeen, c.Bytes()); err != nil {
				return err
			}
		case 4:
			c.Want(typ, wire.Bytes)
			if d.histSeen, err = d.appendPart(d.histSeen, c.Bytes()); err != nil {
				return err
			}
		default:
			c.Skip(typ)
		}
	}
	if err = c.Err("a series"); err != nil {
		return err
	}
	labels := ts[start:end]
	if pieces {
		labels = d.region
	}
	s, bad, err := d.seriesOf(labels)
	if err != nil {
		return err
	}
	for _, b := range d.histSeen {
		if err := d.unpack(b); err != nil {
			return err
		}
		var h prompb.Histogram
		if err := h.Unmarshal(b); err != nil {
			return fmt.Errorf("%w: a histogram is broken", wire.ErrMessage)
		}
		row := batch.Histogram{}
		if h.IsFloatHistogram() {
			row.Float = h.ToFloatHistogram()
		} else {
			row.Int = h.ToIntHistogram()
		}
		if err := d.histogram(s, row, h.Timestamp, 0); err != nil {
			return err
		}
	}
	for _, b := range d.exSeen {
		if len(b) > maxExemplar {
			d.dropExemplar(valid.ExemplarLength)
			continue
		}
		var e prompb.Exemplar
		if err := e.Unmarshal(b); err != nil {
			return fmt.Errorf("%w: an exemplar is broken", wire.ErrMessage)
		}
		x := batch.Exemplar{Value: e.Value, T: e.Timestamp, HasT: e.Timestamp != 0}
		for _, l := range e.Labels {
			x.Labels = append(x.Labels, batch.Label{Name: l.Name, Value: l.Value})
		}
		d.exemplar(s, x, len(d.t) > from)
	}
	d.finish(s, bad, from)
	return nil
}

// metadataV1 decodes
//
//	MetricMetadata { MetricType type = 1; string metric_family_name = 2; string help = 4; string unit = 5 }
func metadataV1(b []byte) (family string, m batch.Metadata, err error) {
	var pb prompb.MetricMetadata
	if err := pb.Unmarshal(b); err != nil {
		return "", m, fmt.Errorf("%w: metadata is broken", wire.ErrMessage)
	}
	return pb.MetricFamilyName, batch.Metadata{Type: metricType(int32(pb.Type)), Help: pb.Help, Unit: pb.Unit}, nil
}
