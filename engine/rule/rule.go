// Package rule is the `rule` block of everything that relabels: its arguments,
// their checks, and the rules at work on batches of samples.
//
// What the actions do is Prometheus's (model/relabel), never ours. This
// package decodes them as Alloy does and remembers per series what they
// decided, since they see nothing but labels. It is not a component.
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

// Validate says what is wrong in the words of Prometheus.
func (r *Rule) Validate() error {
	if r.Action == "" {
		return errors.New("relabel action cannot be empty")
	}
	return r.Config().Validate(model.LegacyValidation)
}

// Config returns the rule as Prometheus has it. The rule must be valid.
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

// Configs returns the rules as Prometheus has them.
func Configs(rules []*Rule) []*relabel.Config {
	cfgs := make([]*relabel.Config, len(rules))
	for i, r := range rules {
		cfgs[i] = r.Config()
	}
	return cfgs
}

// Rules is what components that relabel export as `rules`: an opaque value of
// the config language for arguments that take rules from elsewhere. It must
// not be written to.
type Rules []*Rule

// AlloyCapsule makes Rules an opaque value of the config language.
func (Rules) AlloyCapsule() {}

// Action is what a rule does.
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

// Regexp is the source of a regular expression that compiles; rules that are
// equal are equal by ==. The zero value is the empty expression.
type Regexp string

const defaultRegex Regexp = "(.*)"

// maxRegexBytes is what the regex of a rule may take of memory: enough for a list
// of thousands of names.
const maxRegexBytes = 32 << 20

// UnmarshalText accepts what compiles between the anchors of Prometheus, if it
// does not take too much memory.
func (re *Regexp) UnmarshalText(text []byte) error {
	if size, err := regex.Measure(string(text)); err == nil { // else Prometheus says what is wrong
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

// compiled returns the default expression as Prometheus's own object, which
// its Validate and its fast path recognise by pointer.
func (re Regexp) compiled() relabel.Regexp {
	if re == defaultRegex {
		return relabel.DefaultRelabelConfig.Regex
	}
	return relabel.MustNewRegexp(string(re))
}
