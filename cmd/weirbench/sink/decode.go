package sink

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// visitor gets what is in a request, a series at a time.
type visitor interface {
	// series begins a series. key is its labels, unambiguous; all arguments are
	// valid until return.
	series(key, name, instance []byte)
	// sample is a sample of the series begun last. A native histogram comes as
	// its time only.
	sample(bits uint64, t int64, histogram bool)
}

var errMessage = errors.New("cannot read the request")

// decoder reads write requests as they lie. Prometheus's generated types would
// make a string of every label, and the sink shares the machine with the
// collector it measures.
type decoder struct {
	key     []byte
	name    []byte
	inst    []byte
	symbols [][]byte
	v       visitor
}

// fields calls f with every field of a message.
func fields(b []byte, f func(n protowire.Number, typ protowire.Type, v []byte, num uint64) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errMessage, protowire.ParseError(n))
		}
		b = b[n:]
		var v []byte
		var x uint64
		switch typ {
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: field %d: %w", errMessage, num, protowire.ParseError(n))
		}
		b = b[n:]
		if err := f(num, typ, v, x); err != nil {
			return err
		}
	}
	return nil
}

// v1 reads a prometheus.WriteRequest.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/
func (d *decoder) v1(b []byte) error {
	return fields(b, func(n protowire.Number, _ protowire.Type, ts []byte, _ uint64) error {
		if n != 1 {
			return nil // metadata
		}
		d.begin()
		begun := false
		return fields(ts, func(n protowire.Number, _ protowire.Type, v []byte, _ uint64) error {
			if n == 1 {
				var name, value []byte
				err := fields(v, func(n protowire.Number, _ protowire.Type, v []byte, _ uint64) error {
					if n == 1 {
						name = v
					} else {
						value = v
					}
					return nil
				})
				d.label(name, value)
				return err
			}
			if !begun {
				begun = true
				d.v.series(d.key, d.name, d.inst)
			}
			switch n {
			case 2:
				return d.sample(v)
			case 4:
				return d.histogram(v)
			}
			return nil
		})
	})
}

// v2 reads an io.prometheus.write.v2.Request.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/
func (d *decoder) v2(b []byte) error {
	d.symbols = d.symbols[:0]
	// Symbols may stand behind the series in principle.
	err := fields(b, func(n protowire.Number, _ protowire.Type, v []byte, _ uint64) error {
		if n == 4 {
			d.symbols = append(d.symbols, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fields(b, func(n protowire.Number, _ protowire.Type, ts []byte, _ uint64) error {
		if n != 5 {
			return nil
		}
		d.begin()
		begun := false
		return fields(ts, func(n protowire.Number, typ protowire.Type, v []byte, _ uint64) error {
			if n == 1 {
				if typ != protowire.BytesType {
					return fmt.Errorf("%w: label references are not packed", errMessage)
				}
				return d.references(v)
			}
			if !begun {
				begun = true
				d.v.series(d.key, d.name, d.inst)
			}
			switch n {
			case 2:
				return d.sample(v)
			case 3:
				return d.histogram(v)
			}
			return nil
		})
	})
}

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
		d.label(d.symbols[name], d.symbols[value])
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

// sample reads a Sample; both versions number value and time alike, here and
// in histograms.
func (d *decoder) sample(b []byte) error {
	var bits, t uint64
	err := fields(b, func(n protowire.Number, _ protowire.Type, _ []byte, x uint64) error {
		switch n {
		case 1:
			bits = x
		case 2:
			t = x
		}
		return nil
	})
	d.v.sample(bits, int64(t), false)
	return err
}

func (d *decoder) histogram(b []byte) error {
	var t uint64
	err := fields(b, func(n protowire.Number, _ protowire.Type, _ []byte, x uint64) error {
		if n == 15 {
			t = x
		}
		return nil
	})
	d.v.sample(0, int64(t), true)
	return err
}
