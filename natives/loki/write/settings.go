package write

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/httpclient"
	"github.com/weir-run/weir/natives/loki/push"
)

// settings are what an endpoint works by. They are immutable and replaced as a
// whole, while blocks gathered under the old ones may still be sent.
type settings struct {
	args     *Endpoint
	external map[string]string
	limits   journal.Limits
	owner    journal.Owner
	drain    time.Duration
	replaced chan struct{} // closed when other settings follow

	client *http.Client
	header http.Header

	streams    *streams
	maxStreams int
	gather     int // bytes of lines that are written at once
	blockSize  int // bytes, at which a block is closed
}

// newSettings returns old itself when nothing changed. old may be nil.
func newSettings(o *component.Options, a *Arguments, e *Endpoint, old *settings) (*settings, error) {
	s := &settings{
		args: e, external: a.ExternalLabels, limits: a.limits(), drain: a.drain(e), replaced: make(chan struct{}), maxStreams: a.MaxStreams,
		owner:     journal.Owner{Endpoint: e.Name, URL: e.URL, Node: o.ID, Tenant: e.tenant() + a.ExternalLabels[push.TenantLabel]},
		gather:    int(min(e.Queue.Capacity, maxGather)),
		blockSize: int(min(e.BatchSize, maxBlock)),
	}
	sameLabels := old != nil && reflect.DeepEqual(a.ExternalLabels, old.external)
	if sameLabels && s.limits == old.limits && s.drain == old.drain && s.maxStreams == old.maxStreams && reflect.DeepEqual(e, old.args) {
		return old, nil
	}
	if sameLabels {
		s.streams = old.streams // with what they remember
	} else {
		s.streams = newStreams(a.ExternalLabels, o.Clock.Now)
	}
	if old != nil && e.sameClient(old.args) {
		s.client = old.client // with its connections
	} else if err := s.newClient(o); err != nil {
		return nil, fmt.Errorf("cannot send to %s: %w", e.label(), err)
	}
	s.header = http.Header{"User-Agent": {o.UserAgent}}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) { // of two ways to write one, the same each time
		s.header.Set(name, e.Headers[name])
	}
	s.header.Set("Content-Type", push.ContentType)
	s.header.Set("Content-Encoding", "snappy")
	return s, nil
}

// tenant returns the tenant of lines that have none of their own, "" if there
// is none.
func (s *settings) tenant() string {
	if t := s.external[push.TenantLabel]; t != "" {
		return t
	}
	return s.args.TenantID
}

// sameClient reports whether the client of o is also one for e.
func (e *Endpoint) sameClient(o *Endpoint) bool {
	return e.URL == o.URL && reflect.DeepEqual(e.Client, o.Client)
}

// newClient makes the client. What it is made of, sameClient compares.
func (s *settings) newClient(o *component.Options) error {
	e := s.args
	client, err := httpclient.NewClient(&e.Client, o.ID)
	if err != nil {
		return err
	}
	e.Client.Plain(client, nil)
	client.CheckRedirect = e.redirect
	s.client = client
	return nil
}

// redirect follows those that keep the request. Of any other a client makes a
// GET without the lines, and its answer may well be 200: they wait instead.
func (e *Endpoint) redirect(req *http.Request, via []*http.Request) error {
	if !e.Client.FollowRedirects || req.Method != http.MethodPost {
		return fmt.Errorf("server redirects to %s: make that the endpoint's url", journal.PublicURL(req.URL.String()))
	}
	if len(via) >= 10 {
		return errors.New("server redirects more than 10 times")
	}
	return nil
}
