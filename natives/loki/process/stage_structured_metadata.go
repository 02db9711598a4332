package process

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/push"
)

// StructuredMetadataArguments are the arguments of stage.structured_metadata.
type StructuredMetadataArguments struct {
	// Metadata to set, by name: the extracted value or label that it comes from;
	// an empty one is the name itself. A label is removed.
	Values map[string]*string `alloy:"values,attr,optional"`
	// Extracted values and labels that become metadata under their own names:
	// those that the regular expression matches.
	Regex string `alloy:"regex,attr,optional"`
}

// Validate checks that there are names or an expression.
func (a *StructuredMetadataArguments) Validate() error {
	if len(a.Values) == 0 && a.Regex == "" {
		return errors.New("there is nothing to set: set values, regex or both")
	}
	return errors.Join(labelNames("values", maps.Keys(a.Values)), optionalRegexp("regex", a.Regex))
}

// metadataStage sets metadata from extracted values and labels.
type metadataStage struct {
	names, sources []string
	slots          []int
	re             *regexp.Regexp // nil without an expression
	unlabel        *derivation    // removes the labels that became metadata
}

func (a *StructuredMetadataArguments) compile(c *compiler) (stage, error) {
	s := &metadataStage{}
	s.names, s.sources = sourced(a.Values)
	if a.Regex != "" {
		s.re = regexp.MustCompile(a.Regex)
		c.readAll()
	}
	for _, from := range s.sources {
		s.slots = append(s.slots, c.read(from))
	}
	s.unlabel = c.derive(func(b *batch.Builder, _ []value) {
		b.Keep(func(l batch.Label) bool {
			return !slices.Contains(s.sources, l.Name) && (s.re == nil || !s.re.MatchString(l.Name))
		})
	})
	return s, nil
}

func (s *metadataStage) run(_ context.Context, p *pass) {
	var all metadata
	for _, r := range p.rows {
		all.begin(p.metaOf(r))
		for i, slot := range s.slots {
			all.add(s.names[i], p.get(slot, r))
		}
		if s.re != nil {
			p.each(r, func(name string, v value) {
				if s.re.MatchString(name) {
					all.add(name, v)
				}
			})
		}
		was := p.stream[r]
		now := s.unlabel.derive(was, nil)
		if now != was {
			for i, from := range s.sources {
				if l := was.Label(from); l != "" {
					all.add(s.names[i], value{text, l})
				}
			}
			for name, l := range was.Labels() {
				if s.re != nil && s.re.MatchString(name) && !slices.Contains(s.sources, name) {
					all.add(name, value{text, l})
				}
			}
			p.setStream(r, now)
		}
		if all.changed {
			p.setMeta(r, all.finish())
		}
	}
}

// metadata builds the metadata of rows. Consecutive rows with equal metadata
// share a slice.
type metadata struct {
	labels  []batch.Label
	changed bool
	last    []batch.Label
}

// begin starts with the metadata of a row.
func (m *metadata) begin(from []batch.Label) {
	m.labels, m.changed = append(m.labels[:0], from...), false
}

// add sets a name to a value if the value is text.
func (m *metadata) add(name string, v value) {
	s, ok := v.str()
	if !ok || !utf8.ValidString(s) {
		return
	}
	m.changed = true
	m.labels = append(m.labels, batch.Label{Name: name, Value: s}) // finish sorts them
}

// finish returns the metadata of the row. The slice must not be written to
// afterwards.
func (m *metadata) finish() []batch.Label {
	m.labels = push.SortMeta(m.labels)
	if m.last == nil || !slices.Equal(m.last, m.labels) {
		m.last = slices.Clone(m.labels)
	}
	return m.last
}

// StructuredMetadataDropArguments are the arguments of
// stage.structured_metadata_drop.
type StructuredMetadataDropArguments struct {
	// Names of the metadata to remove.
	Values []string `alloy:"values,attr"`
}

// Validate checks that there is at least one name.
func (a *StructuredMetadataDropArguments) Validate() error { return someNames(a.Values) }

type metadataDropStage struct{ names []string }

func (a *StructuredMetadataDropArguments) compile(*compiler) (stage, error) {
	return &metadataDropStage{a.Values}, nil
}

func (s *metadataDropStage) run(_ context.Context, p *pass) {
	for _, r := range p.rows {
		meta := p.metaOf(r)
		if slices.ContainsFunc(meta, func(l batch.Label) bool { return slices.Contains(s.names, l.Name) }) {
			p.setMeta(r, slices.DeleteFunc(slices.Clone(meta), func(l batch.Label) bool { return slices.Contains(s.names, l.Name) }))
		}
	}
}
