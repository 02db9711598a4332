package remotewrite

import (
	"time"

	"github.com/weir-run/weir/engine/journal"
)

// askAgain is the time after which remote write 2.0 is tried again with an
// endpoint that did not support it.
const askAgain = 10 * time.Minute

// fallback records that an endpoint did not support remote write 2.0.
type fallback struct {
	s     *settings // the settings at that time; other settings may belong to another server
	until time.Time
}

// String returns the name of the message in the configuration.
func (m message) String() string {
	if m == v2 {
		return messageV2
	}
	return messageV1
}

// message returns the message to use for the endpoint.
func (e *endpoint) message(s *settings) message {
	if s.args.ProtobufMessage != messageV2 {
		return v1
	}
	if f := e.fallback.Load(); f != nil && f.s == s && e.Clock.Now().Before(f.until) {
		return v1
	}
	return v2
}

// fallBack records that the endpoint refused remote write 2.0 under the settings
// s, and why.
func (e *endpoint) fallBack(s *settings, why error) {
	before := e.fallback.Load()
	if before != nil && before.s == s && e.Clock.Now().Before(before.until) {
		return // recorded by another shard
	}
	if !e.fallback.CompareAndSwap(before, &fallback{s, e.Clock.Now().Add(askAgain)}) {
		return
	}
	e.stats.fallbacks.Add(1)
	if before == nil || before.s != s {
		e.Log.Warn("the endpoint does not take remote write 2.0; it gets 1.0, without start timestamps, and is asked again from time to time",
			"url", journal.PublicURL(s.args.URL), "err", why)
	}
}

// tookV2 records that the endpoint accepted remote write 2.0 under the settings
// s.
func (e *endpoint) tookV2(s *settings) {
	f := e.fallback.Load()
	if f != nil && f.s == s && !e.Clock.Now().Before(f.until) && e.fallback.CompareAndSwap(f, nil) {
		e.Log.Info("the endpoint takes remote write 2.0 now", "url", journal.PublicURL(s.args.URL))
	}
}
