package remotewrite

import (
	"net/http"
	"reflect"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/httpclient"
)

// settings are what an endpoint works by. They are immutable and replaced as a
// whole, while blocks gathered under the old ones may still be sent.
type settings struct {
	args     *Endpoint
	external map[string]string
	limits   journal.Limits
	replaced chan struct{} // closed when other settings follow

	client *http.Client
	header http.Header

	labels      *labeler // nil: as they are
	exemplars   bool
	histograms  bool
	maxSamples  int
	groupBlocks int
	deadline    time.Duration
}

// newSettings returns old itself when nothing changed. old may be nil.
func newSettings(o *component.Options, a *Arguments, e *Endpoint, old *settings) (*settings, error) {
	s := &settings{
		args: e, external: a.ExternalLabels, limits: a.limits(), replaced: make(chan struct{}),
		exemplars:   e.SendExemplars,
		histograms:  e.SendNativeHistograms,
		maxSamples:  e.Queue.MaxSamplesPerSend,
		groupBlocks: max(e.Queue.Capacity/e.Queue.MaxSamplesPerSend, 1),
		deadline:    min(e.Queue.BatchSendDeadline, maxDeadline),
	}
	var sameLabels bool
	if old != nil {
		sameLabels = reflect.DeepEqual(a.ExternalLabels, old.external) && reflect.DeepEqual(e.WriteRelabel, old.args.WriteRelabel)
		if sameLabels && s.limits == old.limits && reflect.DeepEqual(e, old.args) {
			return old, nil
		}
	}
	if sameLabels {
		s.labels = old.labels // with what it remembers
	} else {
		s.labels = newLabeler(a.ExternalLabels, e.WriteRelabel)
	}
	client, err := httpclient.NewClient(&e.Client, o.ID)
	if err != nil {
		return nil, err
	}
	s.client = client
	s.header = http.Header{"User-Agent": {o.UserAgent}}
	for n, v := range e.Headers {
		s.header.Set(n, v)
	}
	s.header.Set("Content-Encoding", "snappy")
	s.header.Set("Content-Type", "application/x-protobuf")
	s.header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	return s, nil
}
