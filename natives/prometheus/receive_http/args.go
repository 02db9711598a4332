package receivehttp

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/server"
)

// Arguments of prometheus.receive_http.
type Arguments struct {
	// Receivers to send the samples to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Messages to accept: "prometheus.WriteRequest" (remote write 1.0) and
	// "io.prometheus.write.v2.Request" (2.0). Other messages are answered 415.
	AcceptedMessages []string `alloy:"accepted_remote_write_protobuf_messages,attr,optional"`
	// Whether the metadata that is sent with samples (2.0) or separately (1.0) becomes
	// the metadata of the series.
	AppendMetadata bool `alloy:"append_metadata,attr,optional"`
	// Whether type and unit in the metadata of 2.0 become the labels __type__ and
	// __unit__.
	EnableTypeAndUnitLabels bool `alloy:"enable_type_and_unit_labels,attr,optional"`

	Server server.Arguments `alloy:",squash"`

	// Limits that Alloy does not have.
	Limits Limits `alloy:"limits,block,optional"`
}

// Limits are limits for requests and the memory that they use.
type Limits struct {
	// Maximum size of a body, before and after decompression; larger bodies are
	// answered 413 or 400.
	MaxBodySize component.Size `alloy:"max_body_size,attr,optional"`
	// Maximum number of concurrent requests; further requests are answered 503.
	MaxRequests int `alloy:"max_requests,attr,optional"`
	// Maximum memory for the bodies and samples of unanswered requests; further requests
	// are answered 503.
	MaxInflightSize component.Size `alloy:"max_inflight_size,attr,optional"`
	// Time that the receivers may take to accept a request before it is answered 503. If
	// server_write_timeout is shorter, it applies instead.
	MaxWait time.Duration `alloy:"max_wait,attr,optional"`
	// Maximum samples per second from one address, with bursts of ten seconds; requests
	// above that are answered 429. 0 is no limit.
	MaxSampleRate int `alloy:"max_sample_rate,attr,optional"`
	// Maximum number of known series; further series are dropped and answered 400. A
	// series is known for 15 minutes after its last sample. 0 is no limit. (Mimir allows
	// 150,000 per tenant; weir may receive samples of several tenants.)
	SeriesLimit int `alloy:"series_limit,attr,optional"`
	// Maximum memory for the labels of the known series; each series counts as 350
	// bytes more than its labels; further series are dropped and answered 400. 0 is no limit.
	MaxSeriesSize component.Size `alloy:"max_series_size,attr,optional"`
	// Maximum number of samples per request; larger requests are answered 400. 0 is no
	// limit.
	SampleLimit int `alloy:"sample_limit,attr,optional"`
	// Maximum number of labels per series; a series with more labels is dropped and
	// answered 400. 0 is no limit. (The default is the default of Mimir's
	// max_label_names_per_series.)
	LabelLimit int `alloy:"label_limit,attr,optional"`
	// Maximum length of a label name in bytes; a series with a longer name is
	// dropped and answered 400. 0 is no limit. (The default is that of Mimir's
	// max_label_name_length.)
	LabelNameLengthLimit int `alloy:"label_name_length_limit,attr,optional"`
	// Maximum length of a label value in bytes; a series with a longer value is
	// dropped and answered 400. 0 is no limit. (The default is that of Mimir's
	// max_label_value_length.)
	LabelValueLengthLimit int `alloy:"label_value_length_limit,attr,optional"`
}

// SetToDefault sets the defaults.
func (l *Limits) SetToDefault() {
	*l = Limits{MaxBodySize: 32 << 20, MaxRequests: 256, MaxInflightSize: 256 << 20, MaxWait: 10 * time.Second,
		SeriesLimit: 1_000_000, MaxSeriesSize: 512 << 20, LabelLimit: 30, LabelNameLengthLimit: 1024, LabelValueLengthLimit: 2048}
}

// Names of the messages of remote write in Content-Type.
const (
	messageV1 = "prometheus.WriteRequest"
	messageV2 = "io.prometheus.write.v2.Request"
)

// SetToDefault sets Alloy's defaults, and those of Limits.
func (a *Arguments) SetToDefault() {
	*a = Arguments{AcceptedMessages: []string{messageV1}}
	a.Server.SetToDefault()
	a.Limits.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(a.AcceptedMessages) == 0 {
		add("accepted_remote_write_protobuf_messages must not be empty: nothing would be accepted")
	}
	for _, m := range a.AcceptedMessages {
		if m != messageV1 && m != messageV2 {
			add("accepted_remote_write_protobuf_messages: unknown message %q, want %q or %q", m, messageV1, messageV2)
		}
	}
	return errors.Join(append(errs, a.Server.Validate())...)
}

// Validate returns all errors in the block, joined.
func (l *Limits) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if l.MaxBodySize <= 0 || l.MaxBodySize > 1<<30 {
		add("max_body_size is %d bytes, must be greater than 0 and at most 1GiB", l.MaxBodySize)
	} else if l.MaxInflightSize < 2*l.MaxBodySize {
		add("max_inflight_size is %d bytes, must be at least twice max_body_size, or a large request would never fit", l.MaxInflightSize)
	}
	if l.MaxRequests <= 0 {
		add("max_requests is %d, must be greater than 0", l.MaxRequests)
	}
	if l.MaxSeriesSize < 0 {
		add("max_series_size is %d bytes, must not be negative", l.MaxSeriesSize)
	}
	if l.MaxWait <= 0 {
		add("max_wait is %s, must be greater than 0", l.MaxWait)
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"max_sample_rate", l.MaxSampleRate}, {"series_limit", l.SeriesLimit}, {"sample_limit", l.SampleLimit},
		{"label_limit", l.LabelLimit}, {"label_name_length_limit", l.LabelNameLengthLimit}, {"label_value_length_limit", l.LabelValueLengthLimit},
	} {
		if n.value < 0 {
			add("%s is %d, must not be negative", n.name, n.value)
		}
	}
	return errors.Join(errs...)
}
