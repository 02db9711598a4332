package process

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// findMeta returns the index of a name in metadata, or the index at which it is
// to be inserted.
func findMeta(meta []batch.Label, name string) (int, bool) {
	return slices.BinarySearchFunc(meta, name, func(l batch.Label, n string) int { return strings.Compare(l.Name, n) })
}
