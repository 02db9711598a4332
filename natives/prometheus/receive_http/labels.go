package receivehttp

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

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
