package write

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/push"
)

// settings are the settings of an endpoint. They are immutable and replaced as a
// whole. Blocks gathered under the old settings may still be sent afterwards.
type settings struct {
	outbox.RemoteSettings
	args     *Endpoint
	external map[string]string

	streams    *streams
	maxStreams int
	gather     int // size in bytes of lines that are written immediately
	blockSize  int // size in bytes at which a block is closed
}

// newSettings returns old itself if nothing changed. old may be nil.
func newSettings(o *component.Options, a *Arguments, e *Endpoint, old *settings) (*settings, error) {
	s := &settings{
		RemoteSettings: outbox.RemoteSettings{
			Shards: e.Queue.shards(), Limits: a.limits(), Drain: a.drain(e), Replaced: make(chan struct{}), Timeout: e.RemoteTimeout,
			Owner: journal.Owner{Endpoint: e.Name, URL: e.URL, Node: o.ID, Tenant: e.tenant() + a.ExternalLabels[push.TenantLabel]},
		},
		args: e, external: a.ExternalLabels, maxStreams: a.MaxStreams, gather: int(min(e.Queue.Capacity, maxGather)), blockSize: int(min(e.BatchSize, maxBlock)),
	}
	sameLabels := old != nil && reflect.DeepEqual(a.ExternalLabels, old.external)
	if sameLabels && s.Limits == old.Limits && s.Drain == old.Drain && s.maxStreams == old.maxStreams && reflect.DeepEqual(e, old.args) {
		return old, nil
	}
	if sameLabels {
		s.streams = old.streams // keeps its cache
	} else {
		s.streams = newStreams(a.ExternalLabels, o.Clock.Now)
	}
	if old != nil && e.sameClient(old.args) {
		s.Client = old.Client // keeps its connections
	} else if err := s.newClient(o); err != nil {
		return nil, fmt.Errorf("cannot send to %s: %w", e.ref().Label(), err)
	}
	s.Header = http.Header{"User-Agent": {o.UserAgent}}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) { // a header may be set in two spellings: choose the same one each time
		s.Header.Set(name, e.Headers[name])
	}
	s.Header.Set("Content-Type", push.ContentType)
	s.Header.Set("Content-Encoding", "snappy")
	return s, nil
}

// tenant returns the tenant for lines without their own tenant, or "".
func (s *settings) tenant() string {
	if t := s.external[push.TenantLabel]; t != "" {
		return t
	}
	return s.args.TenantID
}

// sameClient reports whether the client of o can be used for e.
func (e *Endpoint) sameClient(o *Endpoint) bool {
	return e.URL == o.URL && reflect.DeepEqual(e.Client, o.Client)
}

// newClient creates the client. sameClient compares all settings that it uses.
func (s *settings) newClient(o *component.Options) error {
	e := s.args
	client, err := httpclient.NewClient(&e.Client)
	if err != nil {
		return err
	}
	e.Client.Plain(client, nil)
	client.CheckRedirect = outbox.KeepPost(e.Client.FollowRedirects)
	s.Client = client
	return nil
}
