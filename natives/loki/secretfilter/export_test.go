package secretfilter

import (
	"slices"

	"github.com/weir-run/weir/engine/regex"
)

// Found is a finding, for tests.
type Found struct{ Rule, Secret string }

// Find returns the findings of a configuration in a line. If config is nil, it
// uses the default rules.
func Find(config []byte, line string) ([]Found, error) {
	rs := defaultDetectors()
	if config != nil {
		var err error
		if rs, _, err = parseConfig(config); err != nil {
			return nil, err
		}
	}
	fs, _ := rs.find(line, new(scratch), nil, regex.Guard{})
	var out []Found
	for _, f := range fs {
		out = append(out, Found{f.rule.id, f.secret})
	}
	slices.SortFunc(out, func(a, b Found) int {
		if a.Rule != b.Rule {
			return map[bool]int{true: -1, false: 1}[a.Rule < b.Rule]
		}
		return map[bool]int{true: -1, false: 1}[a.Secret < b.Secret]
	})
	return out, nil
}

// DefaultRules are the embedded rules.
func DefaultRules() string { return string(defaultRules) }
