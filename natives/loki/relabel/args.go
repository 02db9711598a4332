package relabel

import (
	"fmt"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
)

// Arguments of loki.relabel.
type Arguments struct {
	// Receivers to send the lines to that the rules leave.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Relabelling steps, applied in the order they are written.
	Rules []*rule.Rule `alloy:"rule,block,optional"`

	// Has no effect: what the rules made of a stream is remembered for as long
	// as its source sends it.
	MaxCacheSize *int `alloy:"max_cache_size,attr,optional"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate accepts the values that Alloy accepts.
func (a *Arguments) Validate() error {
	if a.MaxCacheSize != nil && *a.MaxCacheSize <= 0 {
		return fmt.Errorf("max_cache_size is %d, must be greater than 0", *a.MaxCacheSize)
	}
	return nil
}

var _ component.Warner = (*Arguments)(nil)

// Warnings names the argument that was written in vain.
func (a *Arguments) Warnings() []string {
	if a.MaxCacheSize != nil {
		return []string{"max_cache_size has no effect"}
	}
	return nil
}

// Exports of loki.relabel.
type Exports struct {
	// Where lines to be relabelled go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
	// The rules, for other components.
	Rules rule.Rules `alloy:"rules,attr"`
}
