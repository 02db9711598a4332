package process

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// findMeta returns where a name is in metadata, or belongs.
func findMeta(meta []batch.Label, name string) (int, bool) {
	return slices.BinarySearchFunc(meta, name, func(l batch.Label, n string) int { return strings.Compare(l.Name, n) })
}
