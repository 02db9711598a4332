package process

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
)

// compileRegexp compiles an attribute that must not be empty.
func compileRegexp(attr, expr string) (*regex.Regexp, error) {
	if expr == "" {
		return nil, fmt.Errorf("%s is empty: write a regular expression", attr)
	}
	re, err := regex.Compile(expr, 0) // expressions in the configuration are trusted and need no limit
	if err != nil {
		return nil, fmt.Errorf("%s: %w", attr, err)
	}
	return re, nil
}

// notEmpty returns an error if the source is set but empty.
func notEmpty(source *string) error {
	if source != nil && *source == "" {
		return errors.New("source is empty: leave it out to read the line")
	}
	return nil
}

// namedParts are the named parts of a text that a regular expression or a pattern
// finds.
type namedParts struct {
	source int
	names  []string
	slots  []int // of the names, negative for names that no stage reads
	// labels also sets labels from the parts in byLabel. It is nil if no labels
	// are set.
	labels  *derivation
	byLabel []int
}

// newNamedParts returns the parts with the given names. A part with the name ""
// is not extracted.
func newNamedParts(c *compiler, names []string, labels bool, source *string) *namedParts {
	n := &namedParts{source: -1, names: names}
	var own []string
	for i, name := range names {
		slot, wanted := -1, false
		if name != "" {
			slot, wanted = c.write(name)
		}
		if !wanted {
			slot = -1
		}
		n.slots = append(n.slots, slot)
		if labels && model.LegacyValidation.IsValidLabelName(name) {
			n.byLabel = append(n.byLabel, i)
			own = append(own, name)
		}
	}
	if len(own) > 0 {
		n.labels = c.derive(func(b *batch.Builder, values []value) {
			for i, v := range values {
				if l, ok := v.str(); ok && utf8.ValidString(l) {
					b.Set(own[i], l)
				}
			}
		})
	}
	if source != nil {
		n.source = c.read(*source)
	}
	return n
}

// idle reports whether no part is used.
func (n *namedParts) idle() bool {
	if n.labels != nil {
		return false
	}
	for _, s := range n.slots {
		if s >= 0 {
			return false
		}
	}
	return true
}

// run calls find for each row and extracts the parts. find returns fewer parts
// than names if the text ended early, and no parts if it does not match. If find
// returns an error, the row is dropped.
func (n *namedParts) run(_ context.Context, p *pass, find func(in string, parts []value) ([]value, error)) {
	if n.idle() {
		return
	}
	var parts []value
	for _, r := range p.rows {
		in, ok := p.source(n.source, r)
		if !ok {
			continue
		}
		var err error
		if parts, err = find(in, parts[:0]); err != nil {
			p.tooSlow(r)
		}
		if len(parts) == 0 {
			continue
		}
		for i, v := range parts {
			if n.slots[i] >= 0 {
				p.set(n.slots[i], r, v)
			}
		}
		if n.labels != nil {
			p.values = p.values[:0]
			for _, i := range n.byLabel {
				v := value{}
				if i < len(parts) {
					v = parts[i]
				}
				p.values = append(p.values, v)
			}
			p.setStream(r, n.labels.derive(p.stream[r], p.values))
		}
	}
}
