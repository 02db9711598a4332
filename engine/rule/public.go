package rule

import (
	"slices"

	"github.com/weir-run/weir/engine/ruleset"
)

// NewPublicRelabeler returns a Relabeler for the labels of what a source takes
// in: after the rules, labels whose names begin with "__" are dropped. They are
// there for the rules only. What then has no labels is kept, with none.
func NewPublicRelabeler(rules []*Rule) *Relabeler {
	r := &Relabeler{rules: rules, cfgs: Configs(rules), public: true}
	r.Mapper = ruleset.NewMapper(r.derive)
	return r
}

// Reads reports whether what the rules make of labels may depend on the value of
// one that begins with "__", which is dropped in the end: whoever has a value
// that no rule reads need not make a label of it.
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
