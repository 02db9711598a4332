package receivehttp

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/wire"
)

// parseLabels appends the labels of a region of label fields to dst. Their
// strings are copies.
func parseLabels(dst []batch.Label, region []byte) ([]batch.Label, error) {
	c := wire.Read(region)
	for c.More() {
		_, typ := c.Field()
		c.Want(typ, wire.Bytes)
		var l batch.Label
		m := wire.Read(c.Bytes())
		for m.More() {
			num, typ := m.Field()
			switch num {
			case 1:
				m.Want(typ, wire.Bytes)
				l.Name = string(m.Bytes())
			case 2:
				m.Want(typ, wire.Bytes)
				l.Value = string(m.Bytes())
			default:
				m.Skip(typ)
			}
		}
		if err := m.Err("a label"); err != nil {
			return dst, err
		}
		dst = append(dst, l)
	}
	return dst, c.Err("a series' labels")
}

// sortLabels sorts labels by name.
func sortLabels(ls []batch.Label) {
	slices.SortStableFunc(ls, func(a, b batch.Label) int { return cmp.Compare(a.Name, b.Name) })
}
