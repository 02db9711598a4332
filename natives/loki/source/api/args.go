package api

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/engine/server"
)

// Arguments of loki.source.api.
type Arguments struct {
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Labels of all lines. They replace labels of the same names in a request.
	Labels map[string]string `alloy:"labels,attr,optional"`
	// Rules for the pushed streams: the `rules` of a loki.relabel or prometheus.relabel.
	// Labels that begin with "__" are dropped after the rules.
	RelabelRules rule.Rules `alloy:"relabel_rules,attr,optional"`
	// Whether lines keep the time in the request. Otherwise, they get their time of
	// arrival.
	UseIncomingTimestamp bool `alloy:"use_incoming_timestamp,attr,optional"`
	// Maximum size of a body, before and after decompression; larger bodies are
	// answered 413.
	MaxSize component.Size `alloy:"max_send_message_size,attr,optional"`

	Server server.Arguments `alloy:",squash"`

	// Limits that Alloy does not have.
	Limits Limits `alloy:"limits,block,optional"`
}

// Limits are limits for requests and the memory that they use.
type Limits struct {
	// Maximum number of concurrent requests; further requests are answered 429.
	MaxRequests int `alloy:"max_requests,attr,optional"`
	// Maximum memory for the bodies and lines of unanswered requests; further requests
	// are answered 429.
	MaxInflightSize component.Size `alloy:"max_inflight_size,attr,optional"`
	// Time that the receivers may take to accept a request before it is answered 503. If
	// server_write_timeout is shorter, it applies instead.
	MaxWait time.Duration `alloy:"max_wait,attr,optional"`
	// Maximum number of known streams, counted per tenant and stream; lines of further
	// streams are dropped and answered 400. A stream is known for 15 minutes after its
	// last line. The labels of all streams may use 640 bytes per stream on average. 0 is no limit.
	// (Loki allows 5,000 per tenant.)
	StreamLimit int `alloy:"stream_limit,attr,optional"`
	// Maximum number of lines per request; larger requests are answered 413. 0 is no
	// limit.
	LineLimit int `alloy:"line_limit,attr,optional"`
	// Maximum size of a line; larger lines are dropped and answered 400. 0B is no limit.
	// (The default is the default of Loki's max_line_size.)
	MaxLineSize component.Size `alloy:"max_line_size,attr,optional"`
	// Maximum number of labels of a stream on arrival; the lines of a stream with more
	// labels are dropped and answered 400. 0 is no limit. (The default is the default of
	// Loki's max_label_names_per_series.)
	LabelLimit int `alloy:"label_limit,attr,optional"`
	// Maximum length of a label name in bytes; the lines of a stream with a
	// longer name are dropped and answered 400. 0 is no limit. (The default is
	// that of Loki's max_label_name_length.)
	LabelNameLengthLimit int `alloy:"label_name_length_limit,attr,optional"`
	// Maximum length of a label value in bytes; the lines of a stream with a
	// longer value are dropped and answered 400. 0 is no limit. (The default is
	// that of Loki's max_label_value_length.)
	LabelValueLengthLimit int `alloy:"label_value_length_limit,attr,optional"`
	// Maximum number of structured metadata entries of a line; a line with more
	// is dropped and answered 400. 0 is no limit. (The default is that of Loki's
	// max_structured_metadata_entries_count.)
	MetadataLimit int `alloy:"structured_metadata_limit,attr,optional"`
	// Maximum size of the names and values in a line's structured metadata; a
	// line with more is dropped and answered 400. 0B is no limit. (The default is
	// that of Loki's max_structured_metadata_size.)
	MaxMetadataSize component.Size `alloy:"max_structured_metadata_size,attr,optional"`
}

// SetToDefault sets the defaults.
func (l *Limits) SetToDefault() {
	*l = Limits{
		MaxRequests: 256, MaxInflightSize: 512 << 20, MaxWait: 10 * time.Second,
		StreamLimit: 100_000, LineLimit: 1_000_000, MaxLineSize: 256 << 10,
		LabelLimit: 15, LabelNameLengthLimit: 1024, LabelValueLengthLimit: 2048,
		MetadataLimit: 128, MaxMetadataSize: 64 << 10,
	}
}

// SetToDefault sets Alloy's defaults, and those of Limits.
func (a *Arguments) SetToDefault() {
	*a = Arguments{MaxSize: 100 << 20}
	a.Server.SetToDefault()
	a.Limits.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for name := range a.Labels {
		if !model.LegacyValidation.IsValidLabelName(name) {
			add("labels: %q is not a valid label name", name)
		}
	}
	if a.MaxSize <= 0 || a.MaxSize > 1<<30 {
		add("max_send_message_size is %d bytes, must be greater than 0 and at most 1GiB", a.MaxSize)
	} else if a.Limits.MaxInflightSize < 3*a.MaxSize {
		add("limits.max_inflight_size is %d bytes, must be at least three times max_send_message_size, or a large request would never fit", a.Limits.MaxInflightSize)
	}
	return errors.Join(append(errs, a.Server.Validate())...)
}

// Validate returns all errors in the block, joined.
func (l *Limits) Validate() error {
	var errs []error
	if l.MaxRequests <= 0 {
		errs = append(errs, fmt.Errorf("max_requests is %d, must be greater than 0", l.MaxRequests))
	}
	if l.MaxWait <= 0 {
		errs = append(errs, fmt.Errorf("max_wait is %s, must be greater than 0", l.MaxWait))
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"stream_limit", int64(l.StreamLimit)}, {"line_limit", int64(l.LineLimit)}, {"max_line_size", int64(l.MaxLineSize)},
		{"label_limit", int64(l.LabelLimit)}, {"label_name_length_limit", int64(l.LabelNameLengthLimit)}, {"label_value_length_limit", int64(l.LabelValueLengthLimit)},
		{"structured_metadata_limit", int64(l.MetadataLimit)}, {"max_structured_metadata_size", int64(l.MaxMetadataSize)},
	} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, must not be negative", n.name, n.value))
		}
	}
	return errors.Join(errs...)
}
