package rule

import (
	"slices"

	"github.com/weir-run/weir/engine/ruleset"
)

// NewPublicRelabeler returns a Relabeler for the labels of data that a source
// receives: after the rules, labels whose names begin with "__" are removed,
// because they are only input of the rules. A series that has no labels left is
// kept.
func NewPublicRelabeler(rules []*Rule) *Relabeler {
	r := &Relabeler{rules: rules, cfgs: Configs(rules), public: true}
	r.Mapper = ruleset.NewMapper(r.derive)
	return r
}

// Reads reports whether the result of the rules may depend on a label that
// begins with "__", which is removed in the end. If no rule reads it, the
// caller need not create it.
func Reads(rules []*Rule, name string) bool {
	for _, r := range rules {
		switch r.Action {
		case "labelmap":
			if r.Config().Regex.MatchString(name) {
				return true
			}
		case "keepequal", "dropequal":
			if r.TargetLabel == name {
				return true
			}
		}
		if slices.Contains(r.SourceLabels, name) {
			return true
		}
	}
	return false
}
