package process

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/natives/loki/push"
)

// MessageArguments are those of stage.eventlogmessage and stage.windowsevent,
// which find names and values in a text.
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

// SetToDefault reads the value message.
func (a *MessageArguments) SetToDefault() { *a = MessageArguments{Source: "message"} }

// Validate wants a source that can be a label.
func (a *MessageArguments) Validate() error {
	if !model.LegacyValidation.IsValidLabelName(a.Source) {
		return fmt.Errorf("source is %q, which is no name of a label: letters, digits and _ make one, and no digit is the first", a.Source)
	}
	return nil
}

// named are values whose names are in the text that they are found in.
type named struct {
	MessageArguments
	source int
	slots  map[string]int
	idle   bool // nobody reads any of them
}

const takenSuffix = "_extracted"

// named returns what a stage needs to extract values of any names.
func (c *compiler) named(a MessageArguments) *named {
	n := &named{MessageArguments: a, slots: c.slots, idle: len(c.slots) == 0 && !c.pl.all}
	if !a.OverwriteExisting {
		// Whether a name is taken is known of those that somebody reads.
		for name := range maps.Clone(c.slots) {
			if base, ok := strings.CutSuffix(name, takenSuffix); ok {
				c.read(base)
			}
		}
	}
	n.source = c.read(a.Source)
	return n
}

// set extracts a value, unless its name or text is of no use.
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

// has reports whether a name is among the extracted.
func (n *named) has(p *pass, row int, name string) bool {
	if slot, ok := n.slots[name]; ok {
		return p.get(slot, row).exists()
	}
	if p.extra != nil && p.extra[row][name].exists() {
		return true
	}
	return p.origin[row].Label(name) != ""
}
