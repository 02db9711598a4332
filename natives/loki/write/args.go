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
	// Most streams that had lines within the last ten minutes, for each endpoint;
	// lines of further ones are dropped and counted. 0 is no limit.
	MaxStreams int `alloy:"max_streams,attr,optional"`
	// Where to send the lines; each endpoint gets all of them.
	Endpoints []*Endpoint `alloy:"endpoint,block"`
	// Settings of Alloy's write-ahead log; the journal stands in its place.
	WAL *WAL `alloy:"wal,block,optional"`
	// Bounds of the journals, one of which each endpoint has. Damage to a file
	// costs the lines that were there, is logged once and counted; the three
	// newest damaged files are kept, with .damaged after their names, as long as
	// the disk has room.
	Journal outbox.Arguments `alloy:"journal,block,optional"`
}

// Endpoint is where lines are sent.
type Endpoint struct {
	// Name of the endpoint, in metrics and of its journal. Default: the URL.
	// Under another name it begins another journal; what is in the old one waits
	// for the old name, until max_age.
	Name string `alloy:"name,attr,optional"`
	// URL to send to, such as http://loki:3100/loki/api/v1/push.
	URL string `alloy:"url,attr"`
	// How long lines may wait for others to be sent with. They are in the journal
	// meanwhile.
	BatchWait time.Duration `alloy:"batch_wait,attr,optional"`
	// Size of a request, before compression, when no more lines are added to it.
	BatchSize component.Size `alloy:"batch_size,attr,optional"`
	// How long a request may take.
	RemoteTimeout time.Duration `alloy:"remote_timeout,attr,optional"`
	// Headers to add to each request.
	Headers map[string]string `alloy:"headers,attr,optional"`
	// Wait before the first retry. The wait doubles with each further retry, and
	// each is lengthened by up to a tenth at random.
	MinBackoff time.Duration `alloy:"min_backoff_period,attr,optional"`
	// Longest wait between retries. While no connection can be made it is 30s at
	// most, unless max_backoff_retries is set or min_backoff_period is more. Once
	// the endpoint takes a request of one shard again, the others retry at once,
	// unless it was too many of them (429) or they were asked to wait
	// (Retry-After).
	MaxBackoff time.Duration `alloy:"max_backoff_period,attr,optional"`
	// How often a request is tried before its lines are dropped and counted. 0 is
	// until they are taken, or fall off a bound of the journal.
	MaxBackoffRetries int `alloy:"max_backoff_retries,attr,optional"`
	// Tenant of the lines, sent as X-Scope-OrgID; the label __tenant_id__ of a
	// stream counts more.
	TenantID string `alloy:"tenant_id,attr,optional"`
	// Whether a request answered 429 is retried; otherwise its lines are dropped
	// and counted.
	RetryOnHTTP429 bool `alloy:"retry_on_http_429,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`

	// How lines are gathered and sent.
	Queue Queue `alloy:"queue_config,block,optional"`
}

// Queue says how lines are gathered and sent.
type Queue struct {
	// Most bytes of lines of one shard that are gathered before they are written to
	// the journal; more than 128KiB means 128KiB.
	Capacity component.Size `alloy:"capacity,attr,optional"`
	// Shards that send side by side lines without a tenant of their own, 8 at
	// least and 32 at most; those with __tenant_id__ have 24 others. Another number
	// than before takes effect when the journal is opened and nothing is in it.
	MinShards int `alloy:"min_shards,attr,optional"`
	// How long sending may go on when weir stops; more than 3s means 3s. What is
	// left is in the journal for the next start.
	DrainTimeout time.Duration `alloy:"drain_timeout,attr,optional"`
	// Whether sources wait while the journal is full; otherwise lines that come
	// meanwhile are dropped and counted.
	BlockOnOverflow bool `alloy:"block_on_overflow,attr,optional"`
}

// WAL has the settings of Alloy's write-ahead log.
type WAL struct {
	// Has no effect: there is always a journal.
	Enabled *bool `alloy:"enabled,attr,optional"`
	// The journal's max_age.
	MaxSegmentAge *time.Duration `alloy:"max_segment_age,attr,optional"`
	// Has no effect: the journal says when there is something to read.
	MinReadFrequency *time.Duration `alloy:"min_read_frequency,attr,optional"`
	// Has no effect, see min_read_frequency.
	MaxReadFrequency *time.Duration `alloy:"max_read_frequency,attr,optional"`
	// The drain_timeout of every endpoint.
	DrainTimeout *time.Duration `alloy:"drain_timeout,attr,optional"`
}

// Exports of loki.write.
type Exports struct {
	// Where lines to be sent go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{}
	a.Journal.SetToDefault()
}

// SetToDefault sets Alloy's defaults, but for max_backoff_retries.
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

// Validate returns all that is wrong, joined.
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

// Validate returns all that is wrong, joined.
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

// Validate returns all that is wrong, joined.
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

// Warnings names the arguments that were written in vain.
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

// drain returns how long sending may go on when an endpoint stops.
func (a *Arguments) drain(e *Endpoint) time.Duration {
	if a.WAL != nil && a.WAL.DrainTimeout != nil {
		return min(*a.WAL.DrainTimeout, outbox.Grace)
	}
	return min(e.Queue.DrainTimeout, outbox.Grace)
}
