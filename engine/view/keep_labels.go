package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
)

// KeepLabels removes all labels but these from every row. The name of a sample
// stays. There are between 1 and 32 names.
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

// nameSeparator stands between the names in a labelEdit: it is in no name, as it
// is not valid UTF-8.
const nameSeparator = "\xff"

// keepLabels removes the labels that names does not have.
func keepLabels(b *batch.Builder, names string) {
	kept := strings.Split(names, nameSeparator)
	b.Keep(func(l batch.Label) bool { return slices.Contains(kept, l.Name) })
}
