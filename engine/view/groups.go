package view

import "strconv"

// Group is the rows of a window that have the same values in some fields.
type Group[V any] struct {
	Values []V
	Rows   []int // ascending
}

// GroupBy groups the rows that are not dropped. The groups are in the order of
// their first rows. read returns the values of a row, and key returns a text
// that identifies a value.
func GroupBy[V any](m *Window, read func(row int) []V, key func(v V) string) []Group[V] {
	var groups []Group[V]
	known := map[string]int{}
	var id []byte
	for row := m.Next(0); row >= 0; row = m.Next(row + 1) {
		values := read(row)
		id = id[:0]
		for _, v := range values {
			text := key(v)
			id = append(strconv.AppendInt(id, int64(len(text)), 10), ':')
			id = append(id, text...)
		}
		at, ok := known[string(id)]
		if !ok {
			at = len(groups)
			known[string(id)] = at
			groups = append(groups, Group[V]{Values: values})
		}
		groups[at].Rows = append(groups[at].Rows, row)
	}
	return groups
}
