package secretfilter

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/flow"
)

// Arguments of loki.secretfilter.
type Arguments struct {
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// File with rules that detect secrets, in the format of Gitleaks, of at most 4 MiB.
	// It is read again when it changes. Default: the rules of Gitleaks that are built
	// into weir.
	GitleaksConfig string `alloy:"gitleaks_config,attr,optional"`
	// Replacement for a secret. $SECRET_NAME is replaced with the ID of the rule that
	// found the secret, and $SECRET_HASH with its SHA-1 in hexadecimal digits. Default:
	// the beginning of the secret and three dots, see redact_percent.
	RedactWith string `alloy:"redact_with,attr,optional"`
	// Percentage of a secret to remove if redact_with is not set: 80 keeps the first
	// fifth, 100 replaces the secret with "REDACTED". 0 means 80.
	RedactPercent uint `alloy:"redact_percent,attr,optional"`
	// Fraction of the lines to search, between 0 and 1. The remaining lines are
	// forwarded unchanged.
	Rate float64 `alloy:"rate,attr,optional"`
	// Label whose value is added to the metrics, to show the origin of secrets. Default:
	// none.
	OriginLabel string `alloy:"origin_label,attr,optional"`
	// Maximum time to search one line; 0s is no limit. In addition, the matches of one
	// rule may take at most 1 s per line and 5 s for all lines of a batch. A line that
	// exceeds this is dropped with the reason match_limit.
	ProcessingTimeout time.Duration `alloy:"processing_timeout,attr,optional"`
	// Whether to drop lines that exceed processing_timeout instead of forwarding them
	// unchanged.
	DropOnTimeout bool `alloy:"drop_on_timeout,attr,optional"`
	// Whether to add the label secretfilter="timed-out" to lines that exceed
	// processing_timeout.
	LabelTimedOut bool `alloy:"label_timed_out,attr,optional"`
}

// defaultPercent is the default percentage of a secret to remove.
const defaultPercent = 80

// SetToDefault searches all lines.
func (a *Arguments) SetToDefault() { *a = Arguments{RedactPercent: defaultPercent, Rate: 1} }

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if !(a.Rate >= 0 && a.Rate <= 1) {
		errs = append(errs, fmt.Errorf("rate is %v, must be between 0 and 1", a.Rate))
	}
	if a.RedactPercent > 100 {
		errs = append(errs, fmt.Errorf("redact_percent is %d, must be at most 100", a.RedactPercent))
	}
	if a.ProcessingTimeout < 0 {
		errs = append(errs, fmt.Errorf("processing_timeout is %s, must not be negative", a.ProcessingTimeout))
	}
	return errors.Join(errs...)
}

var _ component.Warner = (*Arguments)(nil)

// Warnings names arguments that have no effect.
func (a *Arguments) Warnings() (ws []string) {
	if a.RedactWith != "" && a.RedactPercent != defaultPercent {
		ws = append(ws, "redact_percent has no effect when redact_with is set")
	}
	if a.ProcessingTimeout == 0 && a.DropOnTimeout {
		ws = append(ws, "drop_on_timeout has no effect without processing_timeout")
	}
	if a.LabelTimedOut && (a.ProcessingTimeout == 0 || a.DropOnTimeout) {
		ws = append(ws, "label_timed_out has no effect without processing_timeout or when drop_on_timeout is set")
	}
	return ws
}

// sameRules reports whether a and o process lines in the same way, as long as the
// files do not change.
func (a *Arguments) sameRules(o *Arguments) bool {
	return a.GitleaksConfig == o.GitleaksConfig && a.RedactWith == o.RedactWith && a.RedactPercent == o.RedactPercent && a.Rate == o.Rate &&
		a.OriginLabel == o.OriginLabel && a.ProcessingTimeout == o.ProcessingTimeout && a.DropOnTimeout == o.DropOnTimeout && a.LabelTimedOut == o.LabelTimedOut
}

var _ component.FileNamer = (*Arguments)(nil)

// NamedFiles returns the file with the rules.
func (a *Arguments) NamedFiles() []component.NamedFile {
	if a.GitleaksConfig == "" {
		return nil
	}
	return []component.NamedFile{{Path: "gitleaks_config", File: a.GitleaksConfig}}
}

// check warns about a file that cannot be used. It is only a warning, because the
// file may change before it is used.
func check(args any, settled func(string) bool) []*component.ArgumentError {
	a := args.(*Arguments)
	if a.GitleaksConfig == "" || !settled("gitleaks_config") {
		return nil
	}
	if files.Answers(a.GitleaksConfig) != nil {
		return nil // the worker must not wait for the file; Update reads it
	}
	if _, _, err := load(a.GitleaksConfig); err != nil {
		return []*component.ArgumentError{{Path: "gitleaks_config", Err: err, Warning: true}}
	}
	return nil
}

// load returns the rules of a file and the paths of all files that contain them.
// If path is "", it returns the built-in rules.
func load(path string) (*detectors, []string, error) {
	if path == "" {
		return defaultDetectors(), nil, nil
	}
	text, err := files.Read(path, maxRules)
	if err != nil {
		return nil, []string{path}, fmt.Errorf("cannot read the rules: %w", err)
	}
	rs, extended, err := parseConfig(text)
	if err != nil {
		return nil, append(extended, path), fmt.Errorf("cannot use the rules in %s: %w", path, err)
	}
	return rs, append(extended, path), nil
}

// Exports of loki.secretfilter.
type Exports struct {
	// Receiver of the lines to search for secrets.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
