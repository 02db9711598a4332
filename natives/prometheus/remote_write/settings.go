package remotewrite

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/httpclient"
)

// settings are what an endpoint works by. They are immutable and replaced as a
// whole, while blocks gathered under the old ones may still be sent.
type settings struct {
	args     *Endpoint
	external map[string]string
	files    string // digest of the files that the client reads once
	limits   journal.Limits
	owner    journal.Owner
	replaced chan struct{} // closed when other settings follow

	client *http.Client
	header http.Header

	labels      *labeler                 // nil: as they are
	symbols     *atomic.Pointer[symbols] // of what labels makes
	values      *values
	maxSamples  int
	groupBlocks int
	deadline    time.Duration
}

// newSettings returns old itself when nothing changed. old may be nil.
func newSettings(o *component.Options, a *Arguments, e *Endpoint, old *settings) (*settings, error) {
	s := &settings{
		args: e, external: a.ExternalLabels, files: httpclient.Digest(e.files()), limits: a.limits(), replaced: make(chan struct{}),
		maxSamples:  e.Queue.MaxSamplesPerSend,
		owner:       journal.Owner{Endpoint: e.Name, URL: e.URL, Node: o.ID, Tenant: e.tenant()},
		groupBlocks: max(e.Queue.Capacity/e.Queue.MaxSamplesPerSend, 1),
		deadline:    min(e.Queue.BatchSendDeadline, maxDeadline),
	}
	var sameLabels bool
	if old != nil {
		sameLabels = reflect.DeepEqual(a.ExternalLabels, old.external) && reflect.DeepEqual(e.WriteRelabel, old.args.WriteRelabel) &&
			reflect.DeepEqual(e.HeaderFromLabel, old.args.HeaderFromLabel)
		if sameLabels && s.files == old.files && s.limits == old.limits && reflect.DeepEqual(e, old.args) {
			return old, nil
		}
	}
	if sameLabels {
		s.labels, s.symbols, s.values = old.labels, old.symbols, old.values // with what they remember
	} else {
		s.labels = newLabeler(a.ExternalLabels, e.WriteRelabel, e.HeaderFromLabel)
		s.symbols = new(atomic.Pointer[symbols])
		s.symbols.Store(newSymbols())
		s.values = &values{now: o.Clock.Now, at: map[string]time.Time{}}
	}
	if old != nil && s.files == old.files && e.sameClient(old.args) {
		s.client = old.client // with its connections
	} else if err := s.newClient(o); err != nil {
		return nil, fmt.Errorf("cannot send to %s: %w", e.label(), err)
	}
	s.header = http.Header{"User-Agent": {o.UserAgent}}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) { // of two ways to write one, the same each time
		s.header.Set(name, e.Headers[name])
	}
	s.header.Set("Content-Encoding", "snappy")
	return s, nil
}

// sameClient reports whether the client of o is also one for e.
func (e *Endpoint) sameClient(o *Endpoint) bool {
	of := func(e *Endpoint) []any {
		return []any{e.URL, e.RoundRobinDNS, e.Client, e.SigV4, e.AzureAD, e.GoogleIAM}
	}
	return reflect.DeepEqual(of(e), of(o))
}

// newClient makes the client. What it is made of, sameClient compares.
func (s *settings) newClient(o *component.Options) error {
	e := s.args
	var opts []config.HTTPClientOption
	var dial config.DialContextFunc
	if e.RoundRobinDNS {
		dial = dialAny
		opts = append(opts, config.WithDialContextFunc(dial))
	}
	client, err := httpclient.NewClient(&e.Client, o.ID, opts...)
	if err != nil {
		return err
	}
	e.Client.Plain(client, dial)
	client.Transport = e.authenticated(client.Transport)
	client.CheckRedirect = e.redirect
	s.client = client
	return nil
}

// redirect follows those that keep the request. Of any other a client makes a
// GET without the samples, and its answer may well be 200: they wait instead.
func (e *Endpoint) redirect(req *http.Request, via []*http.Request) error {
	if !e.Client.FollowRedirects || req.Method != http.MethodPost {
		return fmt.Errorf("server redirects to %s: make that the endpoint's url", journal.PublicURL(req.URL.String()))
	}
	if len(via) >= 10 {
		return errors.New("server redirects more than 10 times")
	}
	return nil
}

// sweep forgets what is known of series and values that went.
func (s *settings) sweep() {
	if s.labels != nil {
		s.labels.memo.Sweep(nil)
	}
	if s.symbols.Load().outgrown() {
		s.symbols.Store(newSymbols())
	}
	s.values.sweep()
}
