package scripting

import "fmt"

// RecordWork is what code does that a script runs for each record, in the finding
// per-record.
type RecordWork string

// The work that is cheaper elsewhere.
const (
	DropsRecords RecordWork = "drop records"
	SetsConstant RecordWork = "set a constant label"
	// EditsSeries is work whose result depends on the labels alone, so that the hook
	// series or stream can do it once for each series.
	EditsSeries RecordWork = "edit it by its labels"
)

// PerRecord returns the text of the finding per-record: what calls the script for each
// record, such as each, and rewrite is the code to write instead. docs/lint.md describes
// how gain is measured.
func PerRecord(what string, only RecordWork, rewrite string, gain int) (hint string, err error) {
	return fmt.Sprintf("write %s, which was measured to be %d times as fast", rewrite, gain),
		fmt.Errorf("%s calls the script for every record only to %s", what, only)
}

// SetLabelGain is how many times as fast as each set_label is.
const SetLabelGain = 100

// SeriesGain returns how many times as fast as each the hook series is, or for logs the
// hook stream, for series that are known.
func SeriesGain(logs bool) int {
	if logs {
		return 20
	}
	return 100
}

// CachedModules are the modules whose functions return the same for the same arguments,
// so that the result of a hook that is cached may depend on them.
var CachedModules = map[string]bool{"re": true, "text": true}

// MaxShownRewrite is the maximum length in bytes of the code of a loop that the finding
// per-record repeats.
const MaxShownRewrite = 160
