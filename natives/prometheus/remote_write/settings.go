package remotewrite

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// settings are what an endpoint works by. They are immutable and replaced as a
// whole, while blocks gathered under the old ones may still be sent.
type settings struct {
	outbox.RemoteSettings
	args     *Endpoint
	external map[string]string
	files    string // digest of the files that the client reads once

	labels      *labeler                 // nil: as they are
	symbols     *atomic.Pointer[symbols] // of what labels makes
	values      *values
	maxSamples  int
	groupBlocks int
	deadline    time.Duration // how long samples are gathered before they are written to the journal
	wait        time.Duration // how long they then wait in it for a full request
	requests    int           // most in flight
}

// newSettings returns old itself when nothing changed. old may be nil.
func newSettings(o *component.Options, a *Arguments, e *Endpoint, old *settings) (*settings, error) {
	s := &settings{
		RemoteSettings: outbox.RemoteSettings{
			Shards: e.Queue.shards(), Limits: a.limits(), Drain: outbox.Grace, Replaced: make(chan struct{}), Timeout: e.RemoteTimeout,
			Owner: journal.Owner{Endpoint: e.Name, URL: e.URL, Node: o.ID, Tenant: e.tenant()},
		},
		args: e, external: a.ExternalLabels, files: httpclient.Digest(e.files()),
		maxSamples:  e.Queue.MaxSamplesPerSend,
		groupBlocks: max(e.Queue.Capacity/e.Queue.MaxSamplesPerSend, 1),
		deadline:    outbox.GatherFor,
		requests:    max(e.Queue.MaxShards, e.Queue.MinShards),
	}
	if d := e.Queue.BatchSendDeadline; d != nil {
		s.deadline = min(*d, outbox.GatherFor)
		s.wait = *d - s.deadline
	}
	var sameLabels bool
	if old != nil {
		sameLabels = reflect.DeepEqual(a.ExternalLabels, old.external) && reflect.DeepEqual(e.WriteRelabel, old.args.WriteRelabel) &&
			reflect.DeepEqual(e.HeaderFromLabel, old.args.HeaderFromLabel)
		if sameLabels && s.files == old.files && s.Limits == old.Limits && reflect.DeepEqual(e, old.args) {
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
		s.Client = old.Client // with its connections
	} else if err := s.newClient(o); err != nil {
		return nil, fmt.Errorf("cannot send to %s: %w", e.ref().Label(), err)
	}
	s.Header = http.Header{"User-Agent": {o.UserAgent}}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) { // of two ways to write one, the same each time
		s.Header.Set(name, e.Headers[name])
	}
	s.Header.Set("Content-Encoding", "snappy")
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
	client, err := httpclient.NewClient(&e.Client, opts...)
	if err != nil {
		return err
	}
	e.Client.Plain(client, dial)
	client.Transport = e.authenticated(client.Transport)
	client.CheckRedirect = outbox.KeepPost(e.Client.FollowRedirects)
	s.Client = client
	return nil
}

// removeIdle forgets what is known of series and values that went.
func (s *settings) removeIdle() {
	if s.labels != nil {
		s.labels.memo.Sweep(nil)
	}
	if s.symbols.Load().outgrown() {
		s.symbols.Store(newSymbols())
	}
	s.values.removeIdle()
}
