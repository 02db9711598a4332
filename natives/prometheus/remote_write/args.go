package remotewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/engine/rule"
)

// Arguments of prometheus.remote_write.
type Arguments struct {
	// Labels to add to every series that does not have them.
	ExternalLabels map[string]string `alloy:"external_labels,attr,optional"`
	// Where to send the samples; each endpoint gets all of them.
	Endpoints []*Endpoint `alloy:"endpoint,block,optional"`
	// Settings of Alloy's write-ahead log; the journal stands in its place.
	WAL *WAL `alloy:"wal,block,optional"`
	// Bounds of the journals, one of which each endpoint has. Damage to a file
	// costs the samples that were there, is logged once and counted; the three
	// newest damaged files are kept, with .damaged after their names, as long as
	// the disk has room.
	Journal outbox.Arguments `alloy:"journal,block,optional"`
}

// Endpoint is where samples are sent.
type Endpoint struct {
	// Name of the endpoint, in metrics and of its journal. Default: the URL.
	// Under another name it begins another journal; what is in the old one waits
	// for the old name, until max_age.
	Name string `alloy:"name,attr,optional"`
	// URL to send to.
	URL string `alloy:"url,attr"`
	// How long a request may take.
	RemoteTimeout time.Duration `alloy:"remote_timeout,attr,optional"`
	// Headers to add to each request.
	Headers map[string]string `alloy:"headers,attr,optional"`
	// Whether exemplars are sent.
	SendExemplars bool `alloy:"send_exemplars,attr,optional"`
	// Whether native histograms are sent; otherwise they are dropped and counted.
	SendNativeHistograms bool `alloy:"send_native_histograms,attr,optional"`
	// Message to send: "prometheus.WriteRequest" (remote write 1.0), or
	// "io.prometheus.write.v2.Request" (2.0), which is smaller and has start
	// timestamps and metadata with each sample. An endpoint that does not take
	// 2.0 gets 1.0, and is asked again every ten minutes. Native histograms with
	// custom buckets need 2.0: over 1.0 they are dropped and counted.
	ProtobufMessage string `alloy:"protobuf_message,attr,optional"`
	// Whether connections are spread over all addresses that the host's name has.
	RoundRobinDNS bool `alloy:"round_robin_dns,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`

	// How samples are gathered into requests and sent.
	Queue Queue `alloy:"queue_config,block,optional"`
	// Sending of type, help and unit.
	Metadata Metadata `alloy:"metadata_config,block,optional"`
	// Relabelling steps, applied after external_labels, in the order they are written.
	WriteRelabel []*rule.Rule `alloy:"write_relabel_config,block,optional"`

	// A tenant, say, that a label of each series names.
	HeaderFromLabel *HeaderFromLabel `alloy:"header_from_label,block,optional"`

	// Signs requests for AWS.
	SigV4 *SigV4 `alloy:"sigv4,block,optional"`
	// Gets tokens from Microsoft Entra ID.
	AzureAD *AzureAD `alloy:"azuread,block,optional"`
	// Gets tokens from Google.
	GoogleIAM *GoogleIAM `alloy:"google_iam,block,optional"`
}

// Queue says how samples are gathered and sent.
type Queue struct {
	// Most samples of one shard that are gathered, in blocks of
	// max_samples_per_send, before they are written to the journal together. While
	// a backlog is sent in several requests at once, it also bounds how many samples
	// are read ahead for each of them; more than twice max_samples_per_send are
	// never read ahead.
	Capacity int `alloy:"capacity,attr,optional"`
	// Most requests in flight at once. A new journal has as many shards, 64 at most.
	// One shard is used as long as one request at a time is enough. A shard that
	// falls behind a slow endpoint is sent in several requests at once, in which
	// each series stays in order.
	MaxShards int `alloy:"max_shards,attr,optional"`
	// Least shards in use, also if it is more than max_shards. The fewer there
	// are, the fuller are the requests.
	MinShards int `alloy:"min_shards,attr,optional"`
	// Most samples in a request. Blocks that wait in the journal are joined up to
	// that; large samples, of 8MiB together, are fewer.
	MaxSamplesPerSend int `alloy:"max_samples_per_send,attr,optional"`
	// How long samples wait until max_samples_per_send of them can be sent
	// together. Default: they are written to the journal within 100ms and sent at
	// once. When weir stops, nothing waits.
	BatchSendDeadline *time.Duration `alloy:"batch_send_deadline,attr,optional"`
	// Wait before the first retry. The wait doubles with each further retry, and
	// each is lengthened by up to a tenth at random.
	MinBackoff time.Duration `alloy:"min_backoff,attr,optional"`
	// Longest wait between retries. Once the endpoint takes a request of one shard
	// again, the others retry at once, unless it asked them to wait (Retry-After).
	MaxBackoff time.Duration `alloy:"max_backoff,attr,optional"`
	// Whether a request answered 429 is retried; otherwise its samples are
	// dropped and counted.
	RetryOnHTTP429 bool `alloy:"retry_on_http_429,attr,optional"`
	// Age above which samples are dropped, and counted, instead of sent; 0s is no limit.
	SampleAgeLimit time.Duration `alloy:"sample_age_limit,attr,optional"`
}

// Metadata says how metadata is sent.
type Metadata struct {
	// Whether metadata is sent.
	Send bool `alloy:"send,attr,optional"`
	// How often it is sent by remote write 1.0; 2.0 has it with every sample.
	SendInterval time.Duration `alloy:"send_interval,attr,optional"`
	// Most families in a request of remote write 1.0 that has metadata.
	MaxSamplesPerSend int `alloy:"max_samples_per_send,attr,optional"`
}

// WAL has the settings of Alloy's write-ahead log.
type WAL struct {
	// Has no effect: a segment is removed as soon as all of it was sent.
	TruncateFrequency *time.Duration `alloy:"truncate_frequency,attr,optional"`
	// Has no effect, see truncate_frequency.
	MinKeepaliveTime *time.Duration `alloy:"min_keepalive_time,attr,optional"`
	// The journal's max_age.
	MaxKeepaliveTime *time.Duration `alloy:"max_keepalive_time,attr,optional"`
}

// Exports of prometheus.remote_write.
type Exports struct {
	// Where samples to be sent go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{}
	a.Journal.SetToDefault()
}

// SetToDefault sets Alloy's defaults.
func (e *Endpoint) SetToDefault() {
	*e = Endpoint{RemoteTimeout: 30 * time.Second, SendExemplars: true, ProtobufMessage: messageV1}
	e.Client.SetToDefault()
	e.Client.EnableHTTP2 = false
	e.Queue.SetToDefault()
	e.Metadata.SetToDefault()
}

// SetToDefault sets Alloy's defaults.
func (q *Queue) SetToDefault() {
	*q = Queue{
		Capacity: 10000, MaxShards: defaultShards, MinShards: 1, MaxSamplesPerSend: 2000,
		MinBackoff: 30 * time.Millisecond, MaxBackoff: 5 * time.Second, RetryOnHTTP429: true,
	}
}

// SetToDefault sets Alloy's defaults.
func (m *Metadata) SetToDefault() {
	*m = Metadata{Send: true, SendInterval: time.Minute, MaxSamplesPerSend: 2000}
}

const (
	messageV1 = "prometheus.WriteRequest"
	messageV2 = "io.prometheus.write.v2.Request"
)

// Validate returns all that is wrong, joined.
func (a *Arguments) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a.ExternalLabels)) {
		value := a.ExternalLabels[name]
		if !model.UTF8Validation.IsValidLabelName(name) || name == model.MetricNameLabel {
			errs = append(errs, fmt.Errorf("external_labels: %q is no valid label name", name))
		}
		if !model.LabelValue(value).IsValid() {
			errs = append(errs, fmt.Errorf("external_labels: the value of %q is not UTF-8", name))
		}
	}
	errs = append(errs, outbox.Twice(a.refs())...)
	if w := a.WAL; w != nil && w.MaxKeepaliveTime != nil {
		if *w.MaxKeepaliveTime <= 0 {
			errs = append(errs, errors.New("wal: max_keepalive_time must be greater than 0"))
		}
		if a.Journal.MaxAge != outbox.DefaultMaxAge && a.Journal.MaxAge != *w.MaxKeepaliveTime {
			errs = append(errs, errors.New("at most one of wal's max_keepalive_time and journal's max_age may be set: they are the same"))
		}
	}
	return errors.Join(errs...)
}

// Validate returns all that is wrong, joined.
func (e *Endpoint) Validate() error {
	errs := []error{outbox.CheckURL(e.URL)}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if e.RemoteTimeout <= 0 {
		add("remote_timeout must be greater than 0")
	}
	errs = append(errs, outbox.CheckHeaders(e.Headers, reservedHeaders...))
	if e.ProtobufMessage != messageV1 && e.ProtobufMessage != messageV2 {
		add("unknown protobuf_message %q, want %q or %q", e.ProtobufMessage, messageV1, messageV2)
	}
	if set := e.auths(); len(set) > 1 && (e.SigV4 != nil || e.AzureAD != nil || e.GoogleIAM != nil) {
		add("at most one authentication method may be set, not %s", strings.Join(set, " and "))
	}
	errs = append(errs, e.Client.Validate())
	return errors.Join(errs...)
}

// reservedHeaders are Prometheus's, except those that are about proxies and
// connections, which http.Transport guards, and those that Alloy lets a user
// set: Authorization and User-Agent.
var reservedHeaders = []string{"X-Prometheus-Remote-Write-Version", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

// Validate returns all that is wrong, joined.
func (q *Queue) Validate() error {
	var errs []error
	positive := func(name string, ok bool) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s must be greater than 0", name))
		}
	}
	positive("capacity", q.Capacity > 0)
	positive("max_shards", q.MaxShards > 0)
	positive("min_shards", q.MinShards > 0)
	positive("max_samples_per_send", q.MaxSamplesPerSend > 0)
	positive("batch_send_deadline", q.BatchSendDeadline == nil || *q.BatchSendDeadline > 0)
	positive("min_backoff", q.MinBackoff > 0)
	if q.MaxBackoff < q.MinBackoff {
		errs = append(errs, errors.New("max_backoff must not be less than min_backoff"))
	}
	if q.SampleAgeLimit < 0 {
		errs = append(errs, errors.New("sample_age_limit must not be negative"))
	}
	return errors.Join(errs...)
}

// Validate returns all that is wrong, joined.
func (m *Metadata) Validate() error {
	if m.SendInterval <= 0 || m.MaxSamplesPerSend <= 0 {
		return errors.New("send_interval and max_samples_per_send must be greater than 0")
	}
	return nil
}

// Warnings names the arguments that were written in vain.
func (w *WAL) Warnings() (ws []string) {
	if w.TruncateFrequency != nil {
		ws = append(ws, "truncate_frequency has no effect")
	}
	if w.MinKeepaliveTime != nil {
		ws = append(ws, "min_keepalive_time has no effect")
	}
	return ws
}

// defaultShards carry far more than a host sends.
const defaultShards = 8

// shards returns how many shards a new journal gets.
func (q *Queue) shards() int {
	return min(max(q.MaxShards, q.MinShards), journal.MaxShards)
}

func (a *Arguments) limits() journal.Limits {
	l := a.Journal.Limits()
	if a.WAL != nil && a.WAL.MaxKeepaliveTime != nil {
		l.MaxAge = *a.WAL.MaxKeepaliveTime
	}
	return l
}

var _ component.Warner = (*WAL)(nil)
