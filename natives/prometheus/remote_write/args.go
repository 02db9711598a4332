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
	// Endpoints to send the samples to; each endpoint gets all samples.
	Endpoints []*Endpoint `alloy:"endpoint,block,optional"`
	// Settings of Alloy's write-ahead log; weir uses the journal instead.
	WAL *WAL `alloy:"wal,block,optional"`
	// Limits of the journals; each endpoint has its own journal. If a file is damaged,
	// its samples are lost; the damage is logged once and counted. The three newest
	// damaged files are kept with the extension .damaged, as long as there is enough
	// disk space.
	Journal outbox.Arguments `alloy:"journal,block,optional"`
}

// Endpoint is the address of a server and how to send samples to it.
type Endpoint struct {
	// Name of the endpoint, for metrics and for its journal. Default: the URL. If the
	// name changes, the endpoint starts a new journal; the old journal waits until the
	// old name is used again, or until max_age.
	Name string `alloy:"name,attr,optional"`
	// URL to send to.
	URL string `alloy:"url,attr"`
	// Timeout of a request.
	RemoteTimeout time.Duration `alloy:"remote_timeout,attr,optional"`
	// Headers to add to each request.
	Headers map[string]string `alloy:"headers,attr,optional"`
	// Whether exemplars are sent.
	SendExemplars bool `alloy:"send_exemplars,attr,optional"`
	// Whether native histograms are sent; otherwise they are dropped and counted.
	SendNativeHistograms bool `alloy:"send_native_histograms,attr,optional"`
	// Message format: "prometheus.WriteRequest" (remote write 1.0), or
	// "io.prometheus.write.v2.Request" (2.0), which is smaller and includes start
	// timestamps and metadata with each sample. If an endpoint does not support 2.0,
	// weir uses 1.0 and tries 2.0 again every ten minutes. Native histograms with custom
	// buckets need 2.0; with 1.0, they are dropped and counted.
	ProtobufMessage string `alloy:"protobuf_message,attr,optional"`
	// Whether connections are spread over all addresses of the host name.
	RoundRobinDNS bool `alloy:"round_robin_dns,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`

	// How samples are batched into requests and sent.
	Queue Queue `alloy:"queue_config,block,optional"`
	// How type, help and unit are sent.
	Metadata Metadata `alloy:"metadata_config,block,optional"`
	// Relabelling steps, applied after external_labels, in the order they are written.
	WriteRelabel []*rule.Rule `alloy:"write_relabel_config,block,optional"`

	// Selects a tenant or another header value by a label of each series.
	HeaderFromLabel *HeaderFromLabel `alloy:"header_from_label,block,optional"`

	// Signs requests for AWS.
	SigV4 *SigV4 `alloy:"sigv4,block,optional"`
	// Gets tokens from Microsoft Entra ID.
	AzureAD *AzureAD `alloy:"azuread,block,optional"`
	// Gets tokens from Google.
	GoogleIAM *GoogleIAM `alloy:"google_iam,block,optional"`
}

// Queue configures how samples are batched and sent.
type Queue struct {
	// Maximum number of samples that a shard collects, in blocks of
	// max_samples_per_send, before it writes them to the journal together. While a
	// backlog is sent in several concurrent requests, it also limits how many samples
	// are read ahead for each of them, which is never more than twice
	// max_samples_per_send.
	Capacity int `alloy:"capacity,attr,optional"`
	// Maximum number of concurrent requests. A new journal has the same number of
	// shards, at most 64. As long as one request at a time is sufficient, only one shard
	// is used. A shard that falls behind because the endpoint is slow is sent in several
	// concurrent requests; each series stays in order.
	MaxShards int `alloy:"max_shards,attr,optional"`
	// Minimum number of shards to use, even if it exceeds max_shards. Fewer shards mean
	// larger requests.
	MinShards int `alloy:"min_shards,attr,optional"`
	// Maximum number of samples in a request. Waiting blocks in the journal are combined
	// up to this number. Requests with large samples, which reach 8MiB in total, contain
	// fewer samples.
	MaxSamplesPerSend int `alloy:"max_samples_per_send,attr,optional"`
	// Maximum time that samples wait for a request to fill. Default: they are written to
	// the journal within 100ms and sent immediately. When weir stops, samples are sent
	// without waiting.
	BatchSendDeadline *time.Duration `alloy:"batch_send_deadline,attr,optional"`
	// Delay before the first retry. The delay doubles with each further retry, and up to
	// a tenth is added at random.
	MinBackoff time.Duration `alloy:"min_backoff,attr,optional"`
	// Maximum delay between retries. When the endpoint accepts a request from one shard
	// again, the other shards retry immediately, unless the endpoint asked them to wait
	// (Retry-After).
	MaxBackoff time.Duration `alloy:"max_backoff,attr,optional"`
	// Whether requests that are answered 429 are retried. Otherwise, their samples are
	// dropped and counted.
	RetryOnHTTP429 bool `alloy:"retry_on_http_429,attr,optional"`
	// Maximum age of samples; older samples are dropped and counted instead of sent. 0s
	// is no limit.
	SampleAgeLimit time.Duration `alloy:"sample_age_limit,attr,optional"`
}

// Metadata configures how metadata is sent.
type Metadata struct {
	// Whether metadata is sent.
	Send bool `alloy:"send,attr,optional"`
	// Interval between metadata requests of remote write 1.0; 2.0 sends metadata with
	// each sample.
	SendInterval time.Duration `alloy:"send_interval,attr,optional"`
	// Maximum number of metric families per metadata request of remote write 1.0.
	MaxSamplesPerSend int `alloy:"max_samples_per_send,attr,optional"`
}

// WAL contains the settings of Alloy's write-ahead log.
type WAL struct {
	// Has no effect: weir removes a segment as soon as all of it was sent.
	TruncateFrequency *time.Duration `alloy:"truncate_frequency,attr,optional"`
	// Has no effect, see truncate_frequency.
	MinKeepaliveTime *time.Duration `alloy:"min_keepalive_time,attr,optional"`
	// Sets max_age of the journal.
	MaxKeepaliveTime *time.Duration `alloy:"max_keepalive_time,attr,optional"`
}

// Exports of prometheus.remote_write.
type Exports struct {
	// Receiver of the samples to send.
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

// Validate returns all errors in the arguments, joined.
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

// Validate returns all errors in the endpoint, joined.
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

// reservedHeaders are the headers that Prometheus reserves, without those that
// concern proxies and connections, which http.Transport protects, and without
// Authorization and User-Agent, which Alloy allows users to set.
var reservedHeaders = []string{"X-Prometheus-Remote-Write-Version", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

// Validate returns all errors in the block, joined.
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

// Validate returns all errors in the block, joined.
func (m *Metadata) Validate() error {
	if m.SendInterval <= 0 || m.MaxSamplesPerSend <= 0 {
		return errors.New("send_interval and max_samples_per_send must be greater than 0")
	}
	return nil
}

// Warnings names the arguments that have no effect.
func (w *WAL) Warnings() (ws []string) {
	if w.TruncateFrequency != nil {
		ws = append(ws, "truncate_frequency has no effect")
	}
	if w.MinKeepaliveTime != nil {
		ws = append(ws, "min_keepalive_time has no effect")
	}
	return ws
}

// defaultShards is sufficient for far more samples than a host sends.
const defaultShards = 8

// shards returns the number of shards of a new journal.
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
