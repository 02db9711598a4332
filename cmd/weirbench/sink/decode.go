package sink

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// visitor receives the content of a request, one series at a time.
type visitor interface {
	// wants reports whether the labels of series with that name are needed.
	// Labels of other series are not decoded, because the sink shares the machine
	// with the measured collector.
	wants(name []byte) bool
	// series begins a series. key is an unambiguous encoding of its labels, or
	// nil if wants returned false. All arguments are valid until return.
	series(key, name, instance []byte)
	// sample is called with each sample of the current series. For a native
	// histogram, only its time is passed.
	sample(bits uint64, t int64, histogram bool)
}

var errMessage = errors.New("cannot read the request")

// decoder decodes write requests without copying them. Prometheus's generated
// types would create a string for every label.
type decoder struct {
	key     []byte
	name    []byte
	inst    []byte
	symbols [][]byte
	v       visitor
}

// field is a field of a message: bytes or a number.
type field struct {
	n   protowire.Number
	typ protowire.Type
	v   []byte
	x   uint64
}

// cut returns the first field of a message and the rest.
func cut(b []byte) (f field, rest []byte, err error) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, nil, fmt.Errorf("%w: %w", errMessage, protowire.ParseError(n))
	}
	b = b[n:]
	f.n, f.typ = num, typ
	switch typ {
	case protowire.BytesType:
		f.v, n = protowire.ConsumeBytes(b)
	case protowire.VarintType:
		f.x, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		f.x, n = protowire.ConsumeFixed64(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		return f, nil, fmt.Errorf("%w: field %d: %w", errMessage, num, protowire.ParseError(n))
	}
	return f, b[n:], nil
}

// v1 decodes a prometheus.WriteRequest.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/
func (d *decoder) v1(b []byte) (err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = cut(b); err != nil {
			return err
		}
		if f.n != 1 {
			continue // metadata
		}
		if err := d.v1Series(f.v); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) v1Series(ts []byte) (err error) {
	var f field
	d.begin()
	begun := false
	for b := ts; len(b) > 0; {
		if d.name != nil && len(b) > 2 && b[0] == 1<<3|byte(protowire.BytesType) && b[1] < 0x80 && int(b[1])+2 <= len(b) {
			b = b[2+int(b[1]):] // a label, the most frequent field
			continue
		}
		if f, b, err = cut(b); err != nil {
			return err
		}
		if f.n == 1 {
			if d.name == nil {
				name, value, err := v1Label(f.v)
				if err != nil {
					return err
				}
				if string(name) == "__name__" {
					d.name = value
				}
			}
			continue
		}
		if !begun {
			begun = true
			if !d.v.wants(d.name) {
				d.v.series(nil, d.name, nil)
			} else if err := d.v1Labels(ts); err != nil {
				return err
			}
		}
		switch f.n {
		case 2:
			err = d.sample(f.v)
		case 4:
			err = d.histogram(f.v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// v1Labels begins a series with its labels.
func (d *decoder) v1Labels(ts []byte) (err error) {
	var f field
	for len(ts) > 0 {
		if f, ts, err = cut(ts); err != nil {
			return err
		}
		if f.n == 1 {
			name, value, err := v1Label(f.v)
			if err != nil {
				return err
			}
			d.label(name, value)
		}
	}
	d.v.series(d.key, d.name, d.inst)
	return nil
}

func v1Label(b []byte) (name, value []byte, err error) {
	var f field
	for len(b) > 0 {
		if f, b, err = cut(b); err != nil {
			return nil, nil, err
		}
		if f.n == 1 {
			name = f.v
		} else {
			value = f.v
		}
	}
	return name, value, nil
}

// v2 decodes an io.prometheus.write.v2.Request.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/
func (d *decoder) v2(b []byte) (err error) {
	var f field
	d.symbols = d.symbols[:0]
	// The symbols may follow the series.
	for all := b; len(all) > 0; {
		if f, all, err = cut(all); err != nil {
			return err
		}
		if f.n == 4 {
			d.symbols = append(d.symbols, f.v)
		}
	}
	for len(b) > 0 {
		if f, b, err = cut(b); err != nil {
			return err
		}
		if f.n != 5 {
			continue
		}
		if err := d.v2Series(f.v); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) v2Series(ts []byte) (err error) {
	var f field
	d.begin()
	begun := false
	for len(ts) > 0 {
		if f, ts, err = cut(ts); err != nil {
			return err
		}
		if f.n == 1 {
			if f.typ != protowire.BytesType {
				return fmt.Errorf("%w: label references are not packed", errMessage)
			}
			if err := d.references(f.v); err != nil {
				return err
			}
			continue
		}
		if !begun {
			begun = true
			if d.v.wants(d.name) {
				d.v.series(d.key, d.name, d.inst)
			} else {
				d.v.series(nil, d.name, nil)
			}
		}
		switch f.n {
		case 2:
			err = d.sample(f.v)
		case 3:
			err = d.histogram(f.v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// references decodes the labels of a series: all of them, or only the name if
// wants returned false.
func (d *decoder) references(b []byte) error {
	for len(b) > 0 {
		name, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return fmt.Errorf("%w: label references end early", errMessage)
		}
		value, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return fmt.Errorf("%w: a label has no value", errMessage)
		}
		b = b[n+m:]
		if name >= uint64(len(d.symbols)) || value >= uint64(len(d.symbols)) {
			return fmt.Errorf("%w: symbol %d or %d is not among the %d there are", errMessage, name, value, len(d.symbols))
		}
		if d.name == nil || d.v.wants(d.name) {
			d.label(d.symbols[name], d.symbols[value])
		}
	}
	return nil
}

func (d *decoder) begin() { d.key, d.name, d.inst = d.key[:0], nil, nil }

func (d *decoder) label(name, value []byte) {
	if bytes.Equal(name, []byte("__name__")) {
		d.name = value
	} else if bytes.Equal(name, []byte("instance")) {
		d.inst = value
	}
	d.key = protowire.AppendVarint(d.key, uint64(len(name)))
	d.key = append(d.key, name...)
	d.key = protowire.AppendVarint(d.key, uint64(len(value)))
	d.key = append(d.key, value...)
}

// sample decodes a Sample. Both versions use the same numbers for value and time,
// also in histograms.
func (d *decoder) sample(b []byte) (err error) {
	var f field
	var bits, t uint64
	for len(b) > 0 {
		if f, b, err = cut(b); err != nil {
			return err
		}
		switch f.n {
		case 1:
			bits = f.x
		case 2:
			t = f.x
		}
	}
	d.v.sample(bits, int64(t), false)
	return nil
}

func (d *decoder) histogram(b []byte) (err error) {
	var f field
	var t uint64
	for len(b) > 0 {
		if f, b, err = cut(b); err != nil {
			return err
		}
		if f.n == 15 {
			t = f.x
		}
	}
	d.v.sample(0, int64(t), true)
	return nil
}
