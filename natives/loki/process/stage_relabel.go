package process

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// LabelDropArguments are the arguments of stage.label_drop.
type LabelDropArguments struct {
	// Labels to remove.
	Values []string `alloy:"values,attr"`
}

// Validate checks that there is at least one label.
func (a *LabelDropArguments) Validate() error { return someNames(a.Values) }

func someNames(values []string) error {
	if len(values) == 0 {
		return errors.New("values is empty: name at least one")
	}
	return nil
}

// LabelKeepArguments are the arguments of stage.label_keep.
type LabelKeepArguments struct {
	// Labels to keep; all others are removed.
	Values []string `alloy:"values,attr"`
}

// Validate checks that there is at least one label.
func (a *LabelKeepArguments) Validate() error { return someNames(a.Values) }

// StaticLabelsArguments are the arguments of stage.static_labels.
type StaticLabelsArguments struct {
	// Labels to set; an empty value sets none.
	Values map[string]*string `alloy:"values,attr"`
}

// Validate checks that the names are valid label names.
func (a *StaticLabelsArguments) Validate() error {
	if len(a.Values) == 0 {
		return errors.New("values is empty: name at least one label")
	}
	return labelNames("values", maps.Keys(a.Values))
}

// relabelStage changes labels without reading extracted values.
type relabelStage struct{ derived *derivation }

func (s *relabelStage) run(_ context.Context, p *pass) { s.derived.apply(p, nil) }

func (a *LabelDropArguments) compile(c *compiler) (stage, error) {
	return &relabelStage{c.derive(func(b *batch.Builder, _ []value) {
		for _, n := range a.Values {
			b.Set(n, "")
		}
	})}, nil
}

func (a *LabelKeepArguments) compile(c *compiler) (stage, error) {
	return &relabelStage{c.derive(func(b *batch.Builder, _ []value) {
		b.Keep(func(l batch.Label) bool { return slices.Contains(a.Values, l.Name) })
	})}, nil
}

func (a *StaticLabelsArguments) compile(c *compiler) (stage, error) {
	return &relabelStage{c.derive(func(b *batch.Builder, _ []value) {
		for n, v := range a.Values {
			if v != nil && *v != "" {
				b.Set(n, *v)
			}
		}
	})}, nil
}
