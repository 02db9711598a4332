package receivehttp

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// appendWire appends labels as batch.Series.AppendWire writes them: field 1 of a
// TimeSeries of remote write 1.0, repeated.
func appendWire(dst []byte, ls []batch.Label) []byte {
	for _, l := range ls {
		dst = appendLabel(dst, l.Name, l.Value)
	}
	return dst
}

func appendLabel[S string | []byte](dst []byte, name, value S) []byte {
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(2+uvarintSize(len(name))+len(name)+uvarintSize(len(value))+len(value)))
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	dst = append(dst, 0x12)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

func uvarintSize(v int) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// parseLabels appends the labels of a region of label fields to dst. Their
// strings are copies.
func parseLabels(dst []batch.Label, region []byte) ([]batch.Label, error) {
	c := read(region)
	for c.more() {
		_, typ := c.field()
		c.want(typ, wireBytes)
		var l batch.Label
		m := read(c.bytes())
		for m.more() {
			num, typ := m.field()
			switch num {
			case 1:
				m.want(typ, wireBytes)
				l.Name = string(m.bytes())
			case 2:
				m.want(typ, wireBytes)
				l.Value = string(m.bytes())
			default:
				m.skip(typ)
			}
		}
		if err := m.err("a label"); err != nil {
			return dst, err
		}
		dst = append(dst, l)
	}
	return dst, c.err("a series' labels")
}

// sortLabels sorts labels by name.
func sortLabels(ls []batch.Label) {
	slices.SortStableFunc(ls, func(a, b batch.Label) int { return cmp.Compare(a.Name, b.Name) })
}
