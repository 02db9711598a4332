package scripting

import (
	"fmt"
	"time"
)

// defineInterval reads interval = "30s": the default interval of poll, which
// the block can override.
func defineInterval(d *definer, field RawField) {
	v, err := (&Arg{Kind: ArgDuration}).convert(field.Value)
	if err != nil {
		d.fail(field.Line, "cannot use this interval: %w", err)
		return
	}
	interval := time.Duration(v.Int())
	if err := CheckInterval(interval); err != nil {
		d.fail(field.Line, "%w", err)
		return
	}
	d.def.Interval = interval
	if d.intervalLine = field.Line; field.Line == 0 {
		d.intervalLine = 1
	}
}

// CheckInterval returns an error if d is not a valid interval of poll.
func CheckInterval(d time.Duration) error {
	if d < minEvery || d > MaxEvery {
		return fmt.Errorf("cannot use %s as interval: it must be between %s and a year", d, minEvery)
	}
	return nil
}

// completeSource checks the required keys of a source. By default, it sends
// metrics, or nothing if it has exports.
func (d *definer) completeSource(line int) {
	def := d.def
	if !def.Poll && !def.Run && len(def.HTTP)+len(def.Every) == 0 && len(d.errs) == 0 {
		d.fail(line, "cannot use a source without a hook: write poll, run, http or every")
	}
	if d.intervalLine > 0 && !def.Poll {
		d.fail(d.intervalLine, "cannot use interval without poll: it is how often poll is called; timers are in every")
	}
	if !d.saysSends && len(def.Exports) == 0 {
		def.Sends = sendsMetrics
	}
	if def.Sends == 0 && len(def.Outputs) > 0 {
		d.fail(line, "cannot use outputs in a source that sends nothing: it has exports, so say what it sends as well").
			Hint = `write sends = { "metrics" }`
	}
}
