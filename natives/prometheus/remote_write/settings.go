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

// settings are the settings of an endpoint. They are immutable and replaced as a
// whole. Blocks gathered under the old settings may still be sent afterwards.
type settings struct {
	outbox.RemoteSettings
	args     *Endpoint
	external map[string]string
	files    string // digest of the files that the client reads once

	labels      *labeler                 // nil if labels are sent unchanged
	symbols     *atomic.Pointer[symbols] // of the labels after labels was applied
	values      *values
	maxSamples  int
	groupBlocks int
	deadline    time.Duration // how long samples are gathered before they are written to the journal
	wait        time.Duration // how long blocks then wait in the journal for a full request
	requests    int           // maximum number of concurrent requests
}

// newSettings returns old itself if nothing changed. old may be nil.
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
		s.labels, s.symbols, s.values = old.labels, old.symbols, old.values // keeps their caches
	} else {
		s.labels = newLabeler(a.ExternalLabels, e.WriteRelabel, e.HeaderFromLabel)
		s.symbols = new(atomic.Pointer[symbols])
		s.symbols.Store(newSymbols())
		s.values = &values{now: o.Clock.Now, at: map[string]time.Time{}}
	}
	if old != nil && s.files == old.files && e.sameClient(old.args) {
		s.Client = old.Client // keeps its connections
	} else if err := s.newClient(o); err != nil {
		return nil, fmt.Errorf("cannot send to %s: %w", e.ref().Label(), err)
	}
	s.Header = http.Header{"User-Agent": {o.UserAgent}}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) { // a header may be set in two spellings: choose the same one each time
		s.Header.Set(name, e.Headers[name])
	}
	s.Header.Set("Content-Encoding", "snappy")
	return s, nil
}

// sameClient reports whether the client of o can be used for e.
func (e *Endpoint) sameClient(o *Endpoint) bool {
	of := func(e *Endpoint) []any {
		return []any{e.URL, e.RoundRobinDNS, e.Client, e.SigV4, e.AzureAD, e.GoogleIAM}
	}
	return reflect.DeepEqual(of(e), of(o))
}

// newClient creates the client. sameClient compares all settings that it uses.
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

// removeIdle removes cached data of series and values that no longer exist.
func (s *settings) removeIdle() {
	if s.labels != nil {
		s.labels.memo.Sweep(nil)
	}
	if s.symbols.Load().outgrown() {
		s.symbols.Store(newSymbols())
	}
	s.values.removeIdle()
}
