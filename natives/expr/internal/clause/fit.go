package clause

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// Fit is the set of signals that the arguments of a block support. The zero value
// is both.
type Fit struct {
	noSamples, noLines string // why they are not supported; "" if they are
}

// Reads adds an argument with an expression.
func (f *Fit) Reads(argument string, p expr.Programs) {
	if p.Why == nil {
		return
	}
	why, _, _ := strings.Cut(p.Why.Msg, ":") // without the list of alternatives
	f.reject(p.Metrics == nil, fmt.Sprintf("%s: %s", argument, why))
}

// Sets adds an argument that sets a field which only records of one signal have.
func (f *Fit) Sets(argument string, only batch.Signals) {
	if only == batch.SignalLogs {
		f.reject(true, fmt.Sprintf("%s: a sample has none", argument))
	} else {
		f.reject(false, fmt.Sprintf("%s: a log line has none", argument))
	}
}

func (f *Fit) reject(samples bool, why string) {
	to := &f.noLines
	if samples {
		to = &f.noSamples
	}
	if *to == "" {
		*to = why
	}
}

// Signals returns the signals and the reason why it is not both, as
// Registration.Passes does. If Err is not nil, it returns both.
func (f *Fit) Signals() (s batch.Signals, why string) {
	const both = batch.SignalMetrics | batch.SignalLogs
	switch {
	case f.noSamples == f.noLines, f.Err() != nil:
		return both, ""
	case f.noSamples != "":
		return batch.SignalLogs, f.noSamples
	}
	return batch.SignalMetrics, f.noLines
}

// Err returns an error if the arguments support neither signal.
func (f *Fit) Err() error {
	if f.noSamples == "" || f.noLines == "" {
		return nil
	}
	return errors.New(f.noLines + ", and " + f.noSamples + "; write a block for samples and one for log lines")
}
