package relabel

import "github.com/weir-run/weir/engine/rule"

// Arguments of discovery.relabel.
type Arguments struct {
	// Targets to relabel.
	Targets []map[string]string `alloy:"targets,attr"`
	// Relabelling steps, applied in the order they are written.
	Rules []*rule.Rule `alloy:"rule,block,optional"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Exports of discovery.relabel.
type Exports struct {
	// The targets that remain after the rules.
	Output []map[string]string `alloy:"output,attr"`
	// The rules, for other components.
	Rules rule.Rules `alloy:"rules,attr"`
}
