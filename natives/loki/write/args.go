package write

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/push"
)

// Arguments of loki.write.
type Arguments struct {
	// Labels to add to every stream that does not have them. __tenant_id__ is the
	// tenant of streams without that label.
	ExternalLabels map[string]string `alloy:"external_labels,attr,optional"`
	// Maximum number of active streams per endpoint: streams that had lines within the
	// last ten minutes. Lines of further streams are dropped and counted. 0 is no limit.
	MaxStreams int `alloy:"max_streams,attr,optional"`
	// Endpoints to send the lines to; each endpoint gets all lines.
	Endpoints []*Endpoint `alloy:"endpoint,block"`
	// Settings of Alloy's write-ahead log; weir uses the journal instead.
	WAL *WAL `alloy:"wal,block,optional"`
	// Limits of the journals; each endpoint has its own journal. If a file is damaged,
	// its lines are lost; the damage is logged once and counted. The three newest
	// damaged files are kept with the extension .damaged, as long as there is enough
	// disk space.
	Journal outbox.Arguments `alloy:"journal,block,optional"`
}

// Endpoint is the address of a server and how to send lines to it.
type Endpoint struct {
	// Name of the endpoint, for metrics and for its journal. Default: the URL. If the
	// name changes, the endpoint starts a new journal; the old journal waits until the
	// old name is used again, or until max_age.
	Name string `alloy:"name,attr,optional"`
	// URL to send to, such as http://loki:3100/loki/api/v1/push.
	URL string `alloy:"url,attr"`
	// Maximum time that lines wait for a request to fill. They are already in the
	// journal at that time.
	BatchWait time.Duration `alloy:"batch_wait,attr,optional"`
	// Size at which a request is complete, before compression.
	BatchSize component.Size `alloy:"batch_size,attr,optional"`
	// Timeout of a request.
	RemoteTimeout time.Duration `alloy:"remote_timeout,attr,optional"`
	// Headers to add to each request.
	Headers map[string]string `alloy:"headers,attr,optional"`
	// Delay before the first retry. The delay doubles with each further retry, and up to
	// a tenth is added at random.
	MinBackoff time.Duration `alloy:"min_backoff_period,attr,optional"`
	// Maximum delay between retries. While no connection can be made, it is at most 30s,
	// unless max_backoff_retries is set or min_backoff_period is longer. When the
	// endpoint accepts a request from one shard again, the other shards retry
	// immediately, unless the endpoint answered 429 or asked them to wait (Retry-After).
	MaxBackoff time.Duration `alloy:"max_backoff_period,attr,optional"`
	// Maximum number of attempts per request; after that, its lines are dropped and
	// counted. 0 retries until the lines are accepted or exceed a limit of the journal.
	MaxBackoffRetries int `alloy:"max_backoff_retries,attr,optional"`
	// Tenant of the lines, sent as X-Scope-OrgID. The label __tenant_id__ of a stream
	// takes precedence.
	TenantID string `alloy:"tenant_id,attr,optional"`
	// Whether requests that are answered 429 are retried. Otherwise, their lines are
	// dropped and counted.
	RetryOnHTTP429 bool `alloy:"retry_on_http_429,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`

	// How lines are batched and sent.
	Queue Queue `alloy:"queue_config,block,optional"`
}

// Queue configures how lines are batched and sent.
type Queue struct {
	// Maximum size of the lines that a shard collects before it writes them to the
	// journal; values above 128KiB mean 128KiB.
	Capacity component.Size `alloy:"capacity,attr,optional"`
	// Number of shards that concurrently send lines without their own tenant, at least 8
	// and at most 32. Lines with __tenant_id__ use 24 further shards. A changed number
	// takes effect when the journal is opened and is empty.
	MinShards int `alloy:"min_shards,attr,optional"`
	// How long weir continues to send when it stops; values above 3s mean 3s. The
	// remaining lines stay in the journal until the next start.
	DrainTimeout time.Duration `alloy:"drain_timeout,attr,optional"`
	// Whether sources wait while the journal is full. Otherwise, lines that arrive while
	// it is full are dropped and counted.
	BlockOnOverflow bool `alloy:"block_on_overflow,attr,optional"`
}

// WAL contains the settings of Alloy's write-ahead log.
type WAL struct {
	// Has no effect: there is always a journal.
	Enabled *bool `alloy:"enabled,attr,optional"`
	// Sets max_age of the journal.
	MaxSegmentAge *time.Duration `alloy:"max_segment_age,attr,optional"`
	// Has no effect: weir reads the journal as soon as it contains data.
	MinReadFrequency *time.Duration `alloy:"min_read_frequency,attr,optional"`
	// Has no effect, see min_read_frequency.
	MaxReadFrequency *time.Duration `alloy:"max_read_frequency,attr,optional"`
	// Sets drain_timeout of every endpoint.
	DrainTimeout *time.Duration `alloy:"drain_timeout,attr,optional"`
}

// Exports of loki.write.
type Exports struct {
	// Receiver of the lines to send.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{}
	a.Journal.SetToDefault()
}

// SetToDefault sets Alloy's defaults, except for max_backoff_retries.
func (e *Endpoint) SetToDefault() {
	*e = Endpoint{
		BatchWait: time.Second, BatchSize: 1 << 20, RemoteTimeout: 10 * time.Second,
		MinBackoff: 500 * time.Millisecond, MaxBackoff: 5 * time.Minute, RetryOnHTTP429: true,
	}
	e.Client.SetToDefault()
	e.Queue.SetToDefault()
}

const defaultDrain = 15 * time.Second

// SetToDefault sets Alloy's defaults.
func (q *Queue) SetToDefault() {
	*q = Queue{Capacity: 10 << 20, MinShards: 1, DrainTimeout: defaultDrain, BlockOnOverflow: true}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(a.ExternalLabels)) {
		value := a.ExternalLabels[name]
		if !model.UTF8Validation.IsValidLabelName(name) {
			add("external_labels: %q is no valid label name", name)
		} else if strings.HasPrefix(name, "__") && name != push.TenantLabel {
			add("external_labels: %q would not be sent: labels that begin with two underscores are not", name)
		}
		if !model.LabelValue(value).IsValid() {
			add("external_labels: the value of %q is not UTF-8", name)
		}
	}
	if t := a.ExternalLabels[push.TenantLabel]; !outbox.ValidValue(t) {
		add("external_labels: %q cannot be a tenant: it has a character that a header cannot have, or is too long", t)
	}
	if a.MaxStreams < 0 {
		add("max_streams must not be negative")
	}
	errs = append(errs, outbox.Twice(a.refs())...)
	return errors.Join(append(errs, a.validateWAL()...)...)
}

func (a *Arguments) validateWAL() (errs []error) {
	w := a.WAL
	if w == nil {
		return nil
	}
	if age := w.MaxSegmentAge; age != nil {
		if *age <= 0 {
			errs = append(errs, errors.New("wal: max_segment_age must be greater than 0"))
		}
		if a.Journal.MaxAge != outbox.DefaultMaxAge && a.Journal.MaxAge != *age {
			errs = append(errs, errors.New("at most one of wal's max_segment_age and journal's max_age may be set: they are the same"))
		}
	}
	if w.DrainTimeout != nil {
		if *w.DrainTimeout < 0 {
			errs = append(errs, errors.New("wal: drain_timeout must not be negative"))
		}
		for _, e := range a.Endpoints {
			if d := e.Queue.DrainTimeout; d != defaultDrain && d != *w.DrainTimeout {
				errs = append(errs, fmt.Errorf("endpoint %s: at most one of its drain_timeout and wal's may be set: they are the same", e.ref().Label()))
			}
		}
	}
	return errs
}

// Validate returns all errors in the endpoint, joined.
func (e *Endpoint) Validate() error {
	errs := []error{outbox.CheckURL(e.URL)}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if e.RemoteTimeout <= 0 {
		add("remote_timeout must be greater than 0")
	}
	if e.BatchWait < 0 {
		add("batch_wait must not be negative")
	}
	if e.BatchSize <= 0 {
		add("batch_size must be greater than 0")
	}
	if e.MinBackoff <= 0 {
		add("min_backoff_period must be greater than 0")
	}
	if e.MaxBackoff < e.MinBackoff {
		add("max_backoff_period must not be less than min_backoff_period")
	}
	if e.MaxBackoffRetries < 0 {
		add("max_backoff_retries must not be negative; 0 is without an end")
	}
	if !outbox.ValidValue(e.TenantID) {
		add("tenant_id %q has a character that a header cannot have, or is too long", e.TenantID)
	}
	errs = append(errs, outbox.CheckHeaders(e.Headers))
	for name := range e.Headers {
		if e.TenantID != "" && http.CanonicalHeaderKey(name) == http.CanonicalHeaderKey(push.TenantHeader) {
			add("headers: at most one of %s and tenant_id may be set: they are the same", push.TenantHeader)
		}
	}
	errs = append(errs, e.Client.Validate())
	return errors.Join(errs...)
}

// Validate returns all errors in the block, joined.
func (q *Queue) Validate() error {
	var errs []error
	if q.Capacity <= 0 {
		errs = append(errs, errors.New("capacity must be greater than 0"))
	}
	if q.MinShards <= 0 {
		errs = append(errs, errors.New("min_shards must be greater than 0"))
	}
	if q.DrainTimeout < 0 {
		errs = append(errs, errors.New("drain_timeout must not be negative"))
	}
	return errors.Join(errs...)
}

// Warnings names the arguments that have no effect.
func (w *WAL) Warnings() (ws []string) {
	if w.Enabled != nil {
		ws = append(ws, "enabled has no effect: there is always a journal")
	}
	if w.MinReadFrequency != nil {
		ws = append(ws, "min_read_frequency has no effect")
	}
	if w.MaxReadFrequency != nil {
		ws = append(ws, "max_read_frequency has no effect")
	}
	return ws
}

var _ component.Warner = (*WAL)(nil)

func (a *Arguments) limits() journal.Limits {
	l := a.Journal.Limits()
	if a.WAL != nil && a.WAL.MaxSegmentAge != nil {
		l.MaxAge = *a.WAL.MaxSegmentAge
	}
	return l
}

// drain returns how long sending may continue when an endpoint stops.
func (a *Arguments) drain(e *Endpoint) time.Duration {
	if a.WAL != nil && a.WAL.DrainTimeout != nil {
		return min(*a.WAL.DrainTimeout, outbox.Grace)
	}
	return min(e.Queue.DrainTimeout, outbox.Grace)
}
