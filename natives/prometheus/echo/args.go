package echo

import (
	"fmt"

	"github.com/weir-run/weir/engine/flow"
)

// Arguments of prometheus.echo.
type Arguments struct {
	// Output format: "text", the Prometheus text format 0.0.4 with timestamps in
	// milliseconds, or "openmetrics", OpenMetrics 1.0 with exemplars.
	Format Format `alloy:"format,attr,optional"`
}

// SetToDefault sets the format to text.
func (a *Arguments) SetToDefault() { *a = Arguments{Format: Text} }

// Exports of prometheus.echo.
type Exports struct {
	// Receiver of the samples to print.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// Format is an exposition format.
type Format string

// The formats.
const (
	Text        Format = "text"
	OpenMetrics Format = "openmetrics"
)

// UnmarshalText accepts the known formats.
func (f *Format) UnmarshalText(text []byte) error {
	switch Format(text) {
	case Text, OpenMetrics:
		*f = Format(text)
		return nil
	}
	return fmt.Errorf("unknown format %q, want %q or %q", text, Text, OpenMetrics)
}

// MarshalText returns the format's name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f), nil }
