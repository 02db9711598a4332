package process

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/natives/loki/push"
)

// MessageArguments are the arguments of stage.eventlogmessage and
// stage.windowsevent, which find names and values in a text.
type MessageArguments struct {
	// The extracted value to read.
	Source string `alloy:"source,attr,optional"`
	// Whether values are left out whose names cannot be those of labels, instead of
	// getting other ones.
	DropInvalidLabels bool `alloy:"drop_invalid_labels,attr,optional"`
	// Whether values take the place of those that were extracted before, instead of
	// being called <name>_extracted.
	OverwriteExisting bool `alloy:"overwrite_existing,attr,optional"`
}

// SetToDefault sets the source to the value message.
func (a *MessageArguments) SetToDefault() { *a = MessageArguments{Source: "message"} }

// Validate checks that the source is a valid label name.
func (a *MessageArguments) Validate() error {
	if !model.LegacyValidation.IsValidLabelName(a.Source) {
		return fmt.Errorf("source is %q, which is no name of a label: letters, digits and _ make one, and no digit is the first", a.Source)
	}
	return nil
}

// named extracts values whose names occur in the text.
type named struct {
	MessageArguments
	source int
	slots  map[string]int
	idle   bool // no stage reads any of them
}

const takenSuffix = "_extracted"

// named returns the extractor for values of any names.
func (c *compiler) named(a MessageArguments) *named {
	n := &named{MessageArguments: a, slots: c.slots, idle: len(c.slots) == 0 && !c.pl.all}
	if !a.OverwriteExisting {
		// If a stage reads a name with the suffix, set must know whether the name
		// without the suffix is taken.
		for name := range maps.Clone(c.slots) {
			if base, ok := strings.CutSuffix(name, takenSuffix); ok {
				c.read(base)
			}
		}
	}
	n.source = c.read(a.Source)
	return n
}

// set extracts a value unless its name or text is unusable.
func (n *named) set(p *pass, row int, name, v string) {
	if !model.LegacyValidation.IsValidLabelName(name) {
		if n.DropInvalidLabels {
			return
		}
		name = push.LabelName(name)
	}
	if !utf8.ValidString(v) {
		return
	}
	if !n.OverwriteExisting && n.has(p, row, name) {
		name += takenSuffix
	}
	if slot, ok := n.slots[name]; ok {
		p.set(slot, row, value{text, v})
		return
	}
	if p.extra != nil {
		p.setExtra(row, name, value{text, v})
	}
}

// has reports whether a value with that name was extracted.
func (n *named) has(p *pass, row int, name string) bool {
	if slot, ok := n.slots[name]; ok {
		return p.get(slot, row).exists()
	}
	if p.extra != nil && p.extra[row][name].exists() {
		return true
	}
	return p.origin[row].Label(name) != ""
}
