package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
)

// LabelsArguments are the arguments of stage.labels.
type LabelsArguments struct {
	// Labels to set, by name: the name of an extracted value or of structured metadata;
	// an empty name means the name of the label.
	Values map[string]*string `alloy:"values,attr"`
	// Where the values are: extracted or structured_metadata.
	SourceType string `alloy:"source_type,attr,optional"`
}

// SetToDefault reads extracted values.
func (a *LabelsArguments) SetToDefault() { *a = LabelsArguments{SourceType: sourceExtracted} }

// The values of source_type.
const (
	sourceExtracted = "extracted"
	sourceMetadata  = "structured_metadata"
)

// Validate checks that the names are valid label names.
func (a *LabelsArguments) Validate() error {
	var errs []error
	if len(a.Values) == 0 {
		errs = append(errs, errors.New("values is empty: name at least one label"))
	}
	errs = append(errs, labelNames("values", maps.Keys(a.Values)))
	switch a.SourceType {
	case "", sourceExtracted, sourceMetadata:
	default:
		errs = append(errs, fmt.Errorf("source_type is %q, want extracted or structured_metadata", a.SourceType))
	}
	return errors.Join(errs...)
}

// labelNames returns an error that lists the invalid label names.
func labelNames(attr string, names func(func(string) bool)) error {
	var errs []error
	for _, n := range slices.Sorted(names) {
		if !model.LegacyValidation.IsValidLabelName(n) {
			errs = append(errs, fmt.Errorf("%s has %q, which is no name of a label: letters, digits and _ make one, and no digit is the first", attr, n))
		}
	}
	return errors.Join(errs...)
}

// sourced returns the names of a map and their sources. The default source is the
// name itself.
func sourced(values map[string]*string) (names, sources []string) {
	for _, n := range slices.Sorted(maps.Keys(values)) {
		from := n
		if s := values[n]; s != nil && *s != "" {
			from = *s
		}
		names, sources = append(names, n), append(sources, from)
	}
	return names, sources
}

// labelsStage sets labels.
type labelsStage struct {
	slots   []int
	sources []string // names of metadata; nil for extracted values
	derived *derivation
}

func (a *LabelsArguments) compile(c *compiler) (stage, error) {
	s := &labelsStage{}
	names, sources := sourced(a.Values)
	if a.SourceType == sourceMetadata {
		s.sources = sources
	} else {
		for _, from := range sources {
			s.slots = append(s.slots, c.read(from))
		}
	}
	s.derived = c.derive(func(b *batch.Builder, values []value) {
		for i, v := range values {
			if l, ok := v.str(); ok && utf8.ValidString(l) {
				b.Set(names[i], l)
			}
		}
	})
	return s, nil
}

func (s *labelsStage) run(_ context.Context, p *pass) {
	if s.sources == nil {
		s.derived.apply(p, s.slots)
		return
	}
	for _, r := range p.rows {
		meta := p.metaOf(r)
		p.values = p.values[:0]
		for _, from := range s.sources {
			v := value{}
			if i, ok := findMeta(meta, from); ok {
				v = value{text, meta[i].Value}
			}
			p.values = append(p.values, v)
		}
		p.setStream(r, s.derived.derive(p.stream[r], p.values))
	}
}
