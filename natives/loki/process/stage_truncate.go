package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

// TruncateArguments are the arguments of stage.truncate.
type TruncateArguments struct {
	// Rules for the values to truncate.
	Rules []*TruncateRule `alloy:"rule,block"`
}

// TruncateRule is a rule of stage.truncate.
type TruncateRule struct {
	// The maximum size, including the suffix.
	Limit component.Size `alloy:"limit,attr"`
	// The suffix of truncated values.
	Suffix string `alloy:"suffix,attr,optional"`
	// The names of the values to truncate; by default, all.
	Sources []string `alloy:"sources,attr,optional"`
	// The type of the values: line, label, structured_metadata or extracted.
	SourceType string `alloy:"source_type,attr,optional"`
}

// Values of source_type.
const (
	fieldLine      = "line"
	fieldLabel     = "label"
	fieldMetadata  = "structured_metadata"
	fieldExtracted = "extracted"
)

// SetToDefault truncates the line.
func (r *TruncateRule) SetToDefault() { *r = TruncateRule{SourceType: fieldLine} }

// Validate returns all errors in the rule, joined.
func (r *TruncateRule) Validate() error {
	var errs []error
	if r.Limit <= 0 {
		errs = append(errs, errors.New("limit must be greater than 0"))
	} else if len(r.Suffix) >= int(r.Limit) {
		errs = append(errs, fmt.Errorf("suffix has %d bytes, must be shorter than limit", len(r.Suffix)))
	}
	switch r.SourceType {
	case "", fieldLine:
		if len(r.Sources) > 0 {
			errs = append(errs, errors.New("sources cannot be set for lines: set source_type"))
		}
	case fieldLabel, fieldMetadata, fieldExtracted:
	default:
		errs = append(errs, fmt.Errorf("source_type is %q, want line, label, structured_metadata or extracted", r.SourceType))
	}
	return errors.Join(errs...)
}

// Validate checks that there is a rule.
func (a *TruncateArguments) Validate() error {
	if len(a.Rules) == 0 {
		return errors.New("there is no rule: write at least one")
	}
	return nil
}

// truncateStage truncates fields that are too long, at a character boundary.
type truncateStage struct {
	rules []truncateRule
	mark  int // the slot of truncated, negative if no stage reads it
}

type truncateRule struct {
	*TruncateRule
	derived *derivation // for labels
	slots   []int       // for extracted values
}

func (a *TruncateArguments) compile(c *compiler) (stage, error) {
	s := &truncateStage{mark: c.wanted("truncated")}
	for _, r := range a.Rules {
		t := truncateRule{TruncateRule: r}
		switch r.SourceType {
		case fieldLabel:
			t.derived = c.derive(func(b *batch.Builder, _ []value) {
				for _, l := range slices.Clone(b.Labels()) {
					if r.appliesTo(l.Name) && r.tooLong(l.Value) {
						b.Set(l.Name, r.cut(l.Value))
					}
				}
			})
		case fieldExtracted:
			// Values that no later stage reads need not be truncated.
			for name, slot := range c.slots {
				if r.appliesTo(name) {
					t.slots = append(t.slots, slot)
				}
			}
			slices.Sort(t.slots)
		}
		s.rules = append(s.rules, t)
	}
	return s, nil
}

// appliesTo reports whether the rule applies to a name.
func (r *TruncateRule) appliesTo(name string) bool {
	return len(r.Sources) == 0 || slices.Contains(r.Sources, name)
}

// keptLength is the number of bytes of a truncated text that remain in front of
// the suffix.
func (r *TruncateRule) keptLength() int { return int(r.Limit) - len(r.Suffix) }

func (r *TruncateRule) tooLong(s string) bool { return len(s) > r.keptLength() }

func (r *TruncateRule) cut(s string) string {
	n := r.keptLength()
	for n > 0 && !utf8.RuneStart(s[n]) && r.keptLength()-n < utf8.UTFMax {
		n--
	}
	return s[:n] + r.Suffix
}

func (s *truncateStage) run(_ context.Context, p *pass) {
	for i := range s.rules {
		t := &s.rules[i]
		field := t.SourceType
		if field == "" {
			field = fieldLine
		}
		for _, r := range p.rows {
			if n := t.apply(p, r); n > 0 {
				p.pl.mem.counts.truncated.WithLabelValues(field).Add(float64(n))
				s.marked(p, r, field)
			}
		}
	}
}

// marked adds a field to the extracted value that lists the truncated fields.
func (s *truncateStage) marked(p *pass, row int, field string) {
	if s.mark < 0 {
		return
	}
	fields := []string{field}
	if before, ok := p.get(s.mark, row).str(); ok && before != "" {
		fields = append(fields, strings.Split(before, ",")...)
	}
	slices.Sort(fields)
	p.set(s.mark, row, value{text, strings.Join(slices.Compact(fields), ",")})
}

// apply truncates the fields of a row to which the rule applies and returns their
// number.
func (t *truncateRule) apply(p *pass, row int) (n int) {
	switch t.SourceType {
	case fieldLabel:
		return t.cutLabels(p, row)
	case fieldMetadata:
		return t.cutMeta(p, row)
	case fieldExtracted:
		for _, slot := range t.slots {
			if v := p.get(slot, row); v.kind == text && t.tooLong(v.text) {
				p.set(slot, row, value{text, t.cut(v.text)})
				n++
			}
		}
		if p.extra != nil {
			n += t.cutExtra(p, row)
		}
		return n
	}
	if l := p.line[row]; t.tooLong(l) {
		p.setLine(row, t.cut(l))
		n++
	}
	return n
}

// cutExtra truncates values that have no slot.
func (t *truncateRule) cutExtra(p *pass, row int) (n int) {
	for name, v := range p.extra[row] {
		if t.appliesTo(name) && v.kind == text && t.tooLong(v.text) {
			p.setExtra(row, name, value{text, t.cut(v.text)})
			n++
		}
	}
	return n
}

func (t *truncateRule) cutLabels(p *pass, row int) (n int) {
	s := p.stream[row]
	cut := t.derived.derive(s, nil)
	if cut == s {
		return 0
	}
	p.setStream(row, cut)
	for name, v := range s.Labels() {
		if t.appliesTo(name) && t.tooLong(v) {
			n++
		}
	}
	return n
}

func (t *truncateRule) cutMeta(p *pass, row int) (n int) {
	meta := p.metaOf(row)
	var own []batch.Label
	for i, l := range meta {
		if t.appliesTo(l.Name) && t.tooLong(l.Value) {
			if own == nil {
				own = slices.Clone(meta)
			}
			own[i].Value = t.cut(l.Value)
			n++
		}
	}
	if n > 0 {
		p.setMeta(row, own)
	}
	return n
}
