package receivehttp

import (
	"cmp"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/wire"
)

// parseLabels sets d.labels to the labels in a region of label fields. Their
// strings are copied.
func (d *decoder) parseLabels(region []byte) error {
	d.labels = d.labels[:0]
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
			return err
		}
		if len(d.labels)%rowChunk == rowChunk-1 && !d.reserve(rowChunk*labelBytes) {
			return errBusy // a label of two bytes takes 32 bytes in memory
		}
		d.labels = append(d.labels, l)
	}
	return c.Err("a series' labels")
}

// labelBytes is the memory for a label in addition to its texts.
const labelBytes = 32

// sortLabels sorts labels by name.
func sortLabels(ls []batch.Label) {
	slices.SortStableFunc(ls, func(a, b batch.Label) int { return cmp.Compare(a.Name, b.Name) })
}
