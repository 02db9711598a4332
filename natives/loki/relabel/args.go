package relabel

import (
	"fmt"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
)

// Arguments of loki.relabel.
type Arguments struct {
	// Receivers of the lines that remain after the rules.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Relabelling steps, applied in the order they are written.
	Rules []*rule.Rule `alloy:"rule,block,optional"`

	// Has no effect: the result for a stream is cached for as long as its source sends
	// the stream.
	MaxCacheSize *int `alloy:"max_cache_size,attr,optional"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate accepts the values that Alloy accepts.
func (a *Arguments) Validate() error {
	if a.MaxCacheSize != nil && *a.MaxCacheSize <= 0 {
		return fmt.Errorf("max_cache_size is %d, must be greater than 0", *a.MaxCacheSize)
	}
	return nil
}

var _ component.Warner = (*Arguments)(nil)

// Warnings names an argument that has no effect.
func (a *Arguments) Warnings() []string {
	if a.MaxCacheSize != nil {
		return []string{"max_cache_size has no effect"}
	}
	return nil
}

// Exports of loki.relabel.
type Exports struct {
	// Receiver of the lines to relabel.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
	// The rules, for other components.
	Rules rule.Rules `alloy:"rules,attr"`
}
