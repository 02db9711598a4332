package relabel

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
)

// Arguments of prometheus.relabel.
type Arguments struct {
	// Receivers of the samples that remain after the rules.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Relabelling steps, applied in the order they are written.
	Rules []*rule.Rule `alloy:"rule,block,optional"`

	// Has no effect: the result for a series is cached for as long as its source sends
	// the series.
	MaxCacheSize *int `alloy:"max_cache_size,attr,optional"`
	// Has no effect, see max_cache_size.
	CacheTTL *time.Duration `alloy:"cache_ttl,attr,optional"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate accepts the values that Alloy accepts.
func (a *Arguments) Validate() error {
	if a.CacheTTL != nil && *a.CacheTTL != 0 {
		if *a.CacheTTL < time.Minute {
			return fmt.Errorf("cache_ttl is %s, must be at least 1m", *a.CacheTTL)
		}
		if a.MaxCacheSize == nil || *a.MaxCacheSize != 0 {
			return errors.New("cache_ttl needs max_cache_size = 0")
		}
		return nil
	}
	if a.MaxCacheSize != nil && *a.MaxCacheSize <= 0 {
		return fmt.Errorf("max_cache_size is %d, must be greater than 0", *a.MaxCacheSize)
	}
	return nil
}

var _ component.Warner = (*Arguments)(nil)

// Warnings names the arguments that have no effect.
func (a *Arguments) Warnings() (ws []string) {
	if a.MaxCacheSize != nil {
		ws = append(ws, "max_cache_size has no effect")
	}
	if a.CacheTTL != nil {
		ws = append(ws, "cache_ttl has no effect")
	}
	return ws
}

// Exports of prometheus.relabel.
type Exports struct {
	// Receiver of the samples to relabel.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
	// The rules, for other components.
	Rules rule.Rules `alloy:"rules,attr"`
}
