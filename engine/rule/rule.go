// Package rule implements the `rule` block of all components that relabel: its
// arguments, their validation, and the application of rules to batches.
//
// The actions are implemented by Prometheus (model/relabel). This package
// decodes the rules as Alloy does and caches their results per series, because
// they depend on labels alone. It is not a component.
package rule

import (
	"errors"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/regex"
)

// Rule is one `rule` block: one relabelling step.
type Rule struct {
	// Labels whose values, joined with separator, the regex is matched against.
	SourceLabels []string `alloy:"source_labels,attr,optional"`
	// The separator that joins the values of source_labels.
	Separator string `alloy:"separator,attr,optional"`
	// RE2 regular expression; it must match the whole input, and `.` matches a
	// newline too.
	Regex Regexp `alloy:"regex,attr,optional"`
	// Divisor of the hash, for the action hashmod.
	Modulus uint64 `alloy:"modulus,attr,optional"`
	// Label that the result is written to; for the action replace it may hold
	// groups of the regex, such as `${1}_total`.
	TargetLabel string `alloy:"target_label,attr,optional"`
	// The value of target_label if the regex matches; it may contain groups
	// of the regex. An empty result removes the label.
	Replacement string `alloy:"replacement,attr,optional"`
	// One of replace, keep, drop, hashmod, labelmap, labeldrop, labelkeep,
	// lowercase, uppercase, keepequal, dropequal.
	Action Action `alloy:"action,attr,optional"`
}

// SetToDefault sets the defaults of Prometheus.
func (r *Rule) SetToDefault() {
	d := relabel.DefaultRelabelConfig
	*r = Rule{
		Separator:   d.Separator,
		Regex:       defaultRegex,
		Replacement: d.Replacement,
		Action:      Action(d.Action),
	}
}

// Validate returns the error in Prometheus's words.
func (r *Rule) Validate() error {
	if r.Action == "" {
		return errors.New("relabel action cannot be empty")
	}
	return r.Config().Validate(model.LegacyValidation)
}

// Config returns the rule in Prometheus's form. The rule must be valid.
func (r *Rule) Config() *relabel.Config {
	var sources model.LabelNames
	for _, l := range r.SourceLabels {
		sources = append(sources, model.LabelName(l))
	}
	return &relabel.Config{
		SourceLabels: sources,
		Separator:    r.Separator,
		Regex:        r.Regex.compiled(),
		Modulus:      r.Modulus,
		TargetLabel:  r.TargetLabel,
		Replacement:  r.Replacement,
		Action:       relabel.Action(r.Action),
		// As in Alloy: label names of the old character set only.
		NameValidationScheme: model.LegacyValidation,
	}
}

// Configs returns the rules in Prometheus's form.
func Configs(rules []*Rule) []*relabel.Config {
	cfgs := make([]*relabel.Config, len(rules))
	for i, r := range rules {
		cfgs[i] = r.Config()
	}
	return cfgs
}

// Rules is the value of the export `rules` of components that relabel: an
// opaque value of the config language for arguments that take rules from other
// components. It must not be modified.
type Rules []*Rule

// AlloyCapsule makes Rules an opaque value of the config language.
func (Rules) AlloyCapsule() {}

// Action is the action of a rule.
type Action relabel.Action

// UnmarshalText accepts the known actions, in lower case.
func (a *Action) UnmarshalText(text []byte) error {
	switch relabel.Action(text) {
	case relabel.Replace, relabel.Keep, relabel.Drop, relabel.HashMod, relabel.LabelMap, relabel.LabelDrop,
		relabel.LabelKeep, relabel.Lowercase, relabel.Uppercase, relabel.KeepEqual, relabel.DropEqual:
		*a = Action(text)
		return nil
	}
	return fmt.Errorf("unknown relabel action %q, want one of replace, keep, drop, hashmod, labelmap, labeldrop, "+
		"labelkeep, lowercase, uppercase, keepequal, dropequal", text)
}

// MarshalText returns the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a), nil }

// Regexp is the source of a valid regular expression; rules can be compared
// with ==. The zero value is the empty expression.
type Regexp string

const defaultRegex Regexp = "(.*)"

// maxRegexBytes is the memory limit for the regex of a rule: enough for a list
// of thousands of names.
const maxRegexBytes = 32 << 20

// UnmarshalText accepts an expression that compiles between the anchors of
// Prometheus and does not use too much memory.
func (re *Regexp) UnmarshalText(text []byte) error {
	if size, err := regex.Measure(string(text)); err == nil { // otherwise, Prometheus reports the error
		if err := size.Fits(maxRegexBytes); err != nil {
			return fmt.Errorf("cannot compile regex %q: %w", regex.Shorten(string(text)), err)
		}
	}
	if _, err := relabel.NewRegexp(string(text)); err != nil {
		return fmt.Errorf("cannot compile regex: %w", err)
	}
	*re = Regexp(text)
	return nil
}

// MarshalText returns the source, without anchors.
func (re Regexp) MarshalText() ([]byte, error) { return []byte(re), nil }

// compiled returns the default expression as Prometheus's own object, because
// its Validate and its fast path compare the pointer.
func (re Regexp) compiled() relabel.Regexp {
	if re == defaultRegex {
		return relabel.DefaultRelabelConfig.Regex
	}
	return relabel.MustNewRegexp(string(re))
}
