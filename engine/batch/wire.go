package batch

import (
	"encoding/binary"
	"iter"
)

// A wire contains labels, sorted by name, in the encoding of the repeated field
// 1 of a remote write 1.0 TimeSeries: 0x0a len (0x0a len name 0x12 len value),
// with varint lengths. A wire in use is immutable, so strings that alias it
// stay valid.

// WireLabels yields the labels of a wire in name order, including the metric
// name.
func WireLabels(wire string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { yieldLabels(wire, yield) }
}

func yieldLabels(wire string, yield func(string, string) bool) (more bool) {
	for len(wire) > 0 {
		var n, v string
		n, v, wire = cutLabel(wire)
		if !yield(n, v) {
			return false
		}
	}
	return true
}

func appendCut(dst []Label, wire string) []Label {
	for len(wire) > 0 {
		var l Label
		l.Name, l.Value, wire = cutLabel(wire)
		dst = append(dst, l)
	}
	return dst
}

// wireValue returns the value of a label in a wire, or "" if it is missing.
func wireValue(w, name string) string {
	for len(w) > 0 {
		// This is the hottest read. A label shorter than 128 bytes has one-byte
		// lengths, so its value starts 6 bytes plus the length of the name after its
		// start.
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

// cutLabel splits the first label off a wire. The wire was encoded by weir, so
// it is well formed.
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

// AppendLabels appends labels in the encoding of AppendWire to dst. They must
// be sorted by name, with unique names and without empty values.
func AppendLabels(dst []byte, sorted []Label) []byte {
	for _, l := range sorted {
		dst = AppendLabel(dst, l.Name, l.Value)
	}
	return dst
}

// AppendLabel appends one label in the encoding of AppendWire to dst. The
// labels of a wire are sorted by name, with unique names and without empty
// values.
func AppendLabel[S string | []byte](dst []byte, name, value S) []byte {
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(wireLabelSize(len(name), len(value))))
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	dst = append(dst, 0x12)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// wireLabelSize returns the length of an encoded label without its own header,
// but with the headers of its name and value.
func wireLabelSize(name, value int) int {
	return 2 + uvarintSize(name) + name + uvarintSize(value) + value
}

func wireSize(ls []Label) (n int) {
	for _, l := range ls {
		m := wireLabelSize(len(l.Name), len(l.Value))
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
