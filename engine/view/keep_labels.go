package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// KeepLabels removes all labels except names from every row. The name of a
// sample is kept. names must contain between 1 and 32 names.
func (m *Window) KeepLabels(names []string) error {
	if len(names) == 0 || len(names) > maxFields {
		return fmt.Errorf("cannot keep %d labels: name between 1 and %d", len(names), maxFields)
	}
	for _, name := range names {
		if err := checkLabelName(name, m.logs); err != nil {
			return err
		}
	}
	kept := names
	if !m.logs {
		kept = append(slices.Clone(names), batch.NameLabel)
	}
	m.editAll(labelEdit{'&', strings.Join(kept, nameSeparator), ""})
	return nil
}

// nameSeparator separates the names in a labelEdit. It is not valid UTF-8 and
// therefore cannot be part of a name.
const nameSeparator = "\xff"

// keepLabels removes the labels that are not in names.
func keepLabels(b *batch.Builder, names string) {
	kept := strings.Split(names, nameSeparator)
	b.Keep(func(l batch.Label) bool { return slices.Contains(kept, l.Name) })
}
