package block

import (
	"errors"
	"fmt"
	"time"
)

// Canary says how a new version of a transform gets a share of the data before it
// takes over.
type Canary struct {
	// Share is the share of the series, between 0 and 1.
	Share float64 `alloy:"share,attr,optional"`
	// By is what the share is of: "series".
	By CanaryBy `alloy:"by,attr,optional"`
	// For is how long the new version is watched until it takes over.
	For time.Duration `alloy:"for,attr,optional"`
	// MaxErrors, MaxDropIncrease and MaxSlowdown are the guards: the version is rolled
	// back if it fails in more of its calls than the running version, by more than
	// MaxErrors; if it drops a larger share of its records, by more than
	// MaxDropIncrease; or if it takes more than MaxSlowdown times as long for each.
	MaxErrors       float64 `alloy:"max_errors,attr,optional"`
	MaxDropIncrease float64 `alloy:"max_drop_increase,attr,optional"`
	MaxSlowdown     float64 `alloy:"max_slowdown,attr,optional"`
}

// SetToDefault fills in the defaults.
func (b *Canary) SetToDefault() {
	*b = Canary{Share: 0.05, By: "series", For: 10 * time.Minute, MaxErrors: 0.01, MaxDropIncrease: 0.5, MaxSlowdown: 4}
}

// Validate checks the ranges.
func (b *Canary) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !(b.Share > 0 && b.Share < 1) {
		refuse("cannot use script.canary.share = %v: it must be greater than 0 and less than 1", b.Share)
	}
	if b.For <= 0 {
		refuse("cannot use script.canary.for = %q: it must be greater than 0s", b.For)
	}
	if !(b.MaxErrors >= 0 && b.MaxErrors <= 1) {
		refuse("cannot use script.canary.max_errors = %v: it must be between 0 and 1", b.MaxErrors)
	}
	if !(b.MaxDropIncrease >= 0 && b.MaxDropIncrease <= 1) {
		refuse("cannot use script.canary.max_drop_increase = %v: it must be between 0 and 1", b.MaxDropIncrease)
	}
	if !(b.MaxSlowdown >= 1) {
		refuse("cannot use script.canary.max_slowdown = %v: it must be 1 or more", b.MaxSlowdown)
	}
	return errors.Join(errs...)
}

// CanaryBy is what the share of a canary is of.
type CanaryBy string

// UnmarshalText accepts what is supported.
func (b *CanaryBy) UnmarshalText(text []byte) error {
	return choose((*string)(b), "by", text, []string{"series"}, nil)
}
