package block

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// Shadow sets how much input a node keeps for on_reload = "shadow", and which
// differences between the running and a new version refuse the new version.
type Shadow struct {
	// InputSize is the approximate size of the input that the node keeps.
	InputSize component.Size `alloy:"input_size,attr,optional"`
	// MaxTime limits the step, which then decides by the results so far.
	MaxTime time.Duration `alloy:"max_time,attr,optional"`
	// MaxTimePerRecord is the average time that the new version may take for a
	// record, from 100 records on. Above it, the new version passes only if the running version is
	// above it too, and takes at least half as long.
	MaxTimePerRecord time.Duration `alloy:"max_time_per_record,attr,optional"`
	// MaxDropIncrease is the share of the records that the new version may drop in
	// addition to those that the running version drops, from 0 to 1.
	MaxDropIncrease float64 `alloy:"max_drop_increase,attr,optional"`
	// MaxChangedRecords is the share of the records for which the result of the
	// new version may differ, from 0 to 1.
	MaxChangedRecords float64 `alloy:"max_changed_records,attr,optional"`
	// MaxNewSeries is the number of series and streams that only the new version
	// may send.
	MaxNewSeries int `alloy:"max_new_series,attr,optional"`
}

// SetToDefault fills in the defaults.
func (b *Shadow) SetToDefault() {
	*b = Shadow{
		InputSize: 4 << 20, MaxTime: 10 * time.Second, MaxTimePerRecord: time.Millisecond,
		MaxDropIncrease: 0.5, MaxChangedRecords: 1, MaxNewSeries: 10_000,
	}
}

// Validate checks the ranges.
func (b *Shadow) Validate() error {
	var errs []error
	if b.InputSize < 64<<10 || b.InputSize > 1<<30 {
		errs = append(errs, fmt.Errorf("cannot use script.shadow.input_size = %d: it must be between 64KiB and 1GiB", b.InputSize))
	}
	if b.MaxTime < 100*time.Millisecond || b.MaxTime > 10*time.Minute {
		errs = append(errs, fmt.Errorf("cannot use script.shadow.max_time = %q: it must be between 100ms and 10m", b.MaxTime))
	}
	if b.MaxTimePerRecord <= 0 {
		errs = append(errs, fmt.Errorf("cannot use script.shadow.max_time_per_record = %q: it must be greater than 0s", b.MaxTimePerRecord))
	}
	for _, share := range []struct {
		name  string
		value float64
	}{{"max_drop_increase", b.MaxDropIncrease}, {"max_changed_records", b.MaxChangedRecords}} {
		if !(share.value >= 0 && share.value <= 1) { // not NaN either
			errs = append(errs, fmt.Errorf("cannot use script.shadow.%s = %v: it is a share and must be between 0 and 1", share.name, share.value))
		}
	}
	if b.MaxNewSeries < 0 {
		errs = append(errs, fmt.Errorf("cannot use script.shadow.max_new_series = %d: it must not be negative", b.MaxNewSeries))
	}
	return errors.Join(errs...)
}
