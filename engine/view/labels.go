package view

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
)

// Limits of the labels that a script may set. They are far higher than useful.
const (
	maxLabels     = 256      // of a record to which labels are added
	maxLabelName  = 1 << 10  // bytes
	maxLabelValue = 64 << 10 // bytes
	// madePerRow is what a call may set and emit per row, in addition to
	// Options.MaxMade, because a value set for a whole batch is copied for each
	// series.
	madePerRow = 4 << 10
)

// DefaultMade is the default of Options.MaxMade.
const DefaultMade = 64 << 20

// ErrTooMuch is wrapped by the error of a call that exceeds its limit.
var ErrTooMuch = errors.New("too much")

// Limit sets the number of bytes that may be set and emitted in this use of the
// window, in addition to the amount that is allowed per row. Call it after
// Reset.
func (m *Window) Limit(bytes int64) { m.room = bytes + int64(len(m.column))*madePerRow }

// chargeRows subtracts n bytes for each of rows rows from what the call may set
// and emit.
func (m *Window) chargeRows(rows, n int) error {
	if m.room -= int64(rows) * int64(n+16); m.room >= 0 {
		return nil
	}
	if m.spare != nil { // spare is slow, so it is called only if it matters
		m.room += m.spare()
		if m.spare = nil; m.room >= 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: the call set and emitted more than %d MiB of lines, labels and metadata, the limit is script.limits.output", ErrTooMuch, m.cache.opts.MaxMade>>20)
}

// labelBytes returns the total size of labels in bytes.
func labelBytes(ls []batch.Label) (n int) {
	for _, l := range ls {
		n += len(l.Name) + len(l.Value)
	}
	return n
}

// checkCount checks the number of labels of an emitted record.
func checkCount(ls []batch.Label) error {
	if len(ls) > maxLabels {
		return fmt.Errorf("cannot emit a record with %d labels: the limit is %d", len(ls), maxLabels)
	}
	return nil
}

// roomFor returns an error if no more labels can be added to b.
func roomFor(b *batch.Builder, name string) error {
	if len(b.Labels()) >= maxLabels && b.Get(name) == "" {
		return fmt.Errorf("cannot set label %q: there are %d already", name, maxLabels)
	}
	return nil
}

// checkLabelName checks the name of a label. logs is true for a label of a
// stream.
func checkLabelName(name string, logs bool) error {
	switch {
	case name == "":
		return fmt.Errorf("cannot use an empty label name")
	case name == batch.NameLabel && !logs:
		return fmt.Errorf("cannot use %s as a label: it is the record's name", batch.NameLabel)
	case len(name) > maxLabelName:
		return fmt.Errorf("cannot use a label name of %d bytes: the limit is %d", len(name), maxLabelName)
	case !utf8.ValidString(name):
		return fmt.Errorf("cannot use label name %q: it is not valid UTF-8", name)
	}
	return nil
}

func checkLabelValue(name, value string) error {
	if len(value) > maxLabelValue {
		return fmt.Errorf("cannot set label %q to %d bytes: the limit is %d", name, len(value), maxLabelValue)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("cannot set label %q to %q: it is not valid UTF-8", name, value)
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("cannot use an empty name: drop the record instead")
	case len(name) > maxLabelName:
		return fmt.Errorf("cannot use a name of %d bytes: the limit is %d", len(name), maxLabelName)
	case !utf8.ValidString(name):
		return fmt.Errorf("cannot use name %q: it is not valid UTF-8", name)
	}
	return nil
}
