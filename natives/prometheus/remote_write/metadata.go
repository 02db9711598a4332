package remotewrite

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/outbox"
)

// metadata collects the metadata of the families that are sent. Each source is
// examined once per interval. This finds all live families and costs nothing for
// the other samples.
type metadata struct {
	mu       sync.Mutex
	seen     map[batch.Origin]bool // the sources examined in this interval
	families map[familyKey]*batch.Metadata
}

// familyKey identifies a family of a tenant. value is the value of
// header_from_label.
type familyKey struct{ value, name string }

func newMetadata() *metadata {
	return &metadata{seen: map[batch.Origin]bool{}, families: map[familyKey]*batch.Metadata{}}
}

func (m *metadata) collect(s *settings, b *batch.Metrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[b.Origin()] {
		return
	}
	m.seen[b.Origin()] = true
	var last *batch.Metadata
	var lastKey familyKey
	for _, series := range b.Series {
		meta := series.Meta()
		if meta == nil {
			continue
		}
		out := s.labels.sent(series)
		if out.dropped() || out.value != "" && !outbox.ValidValue(out.value) {
			continue
		}
		key := familyKey{out.value, out.name(series)}
		if meta == last && key == lastKey {
			continue
		}
		last, lastKey = meta, key
		if key.name = family(key.name, meta); key.name != "" {
			m.families[key] = meta
		}
	}
}

// takeCollected returns the collected metadata and begins a new interval.
func (m *metadata) takeCollected() map[familyKey]*batch.Metadata {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families
	m.families = make(map[familyKey]*batch.Metadata, len(f))
	clear(m.seen)
	return f
}

// family returns the name of the metric family of a series: the name in its
// metadata, unless the series was renamed since.
func family(name string, m *batch.Metadata) string {
	if rest, ok := strings.CutPrefix(name, m.Family); ok && m.Family != "" && slices.Contains(familySuffixes, rest) {
		return m.Family
	}
	var suffixes []string
	switch m.Type {
	case model.MetricTypeHistogram:
		suffixes = []string{"_bucket", "_sum", "_count", "_created"}
	case model.MetricTypeGaugeHistogram:
		suffixes = []string{"_bucket", "_gsum", "_gcount"}
	case model.MetricTypeSummary:
		suffixes = []string{"_sum", "_count", "_created"}
	}
	for _, s := range suffixes {
		if f, ok := strings.CutSuffix(name, s); ok {
			return f
		}
	}
	return name
}

// familySuffixes are the suffixes that the name of a series can have after the
// name of its family.
var familySuffixes = []string{"", "_total", "_created", "_bucket", "_sum", "_count", "_gsum", "_gcount", "_info"}

// name returns the metric name that is sent for a series.
func (s sent) name(of *batch.Series) string {
	if s.same {
		return of.Name()
	}
	for name, value := range batch.WireLabels(s.wire) {
		if name == model.MetricNameLabel {
			return value
		}
	}
	return ""
}

// sendMetadata sends the collected metadata every interval until ctx ends. It
// does not use the journal, because metadata is sent repeatedly.
func (e *endpoint) sendMetadata(ctx context.Context) {
	s := e.settings.Load()
	// The first interval is shorter, so that metadata appears soon.
	timer := e.Clock.NewTimer(min(s.args.Metadata.SendInterval, 10*time.Second))
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			if families := e.meta.takeCollected(); s.args.Metadata.Send && e.message(s) == v1 {
				e.postMetadata(ctx, s, families)
			}
		case <-s.Replaced:
		case <-ctx.Done():
			return
		}
		s = e.settings.Load()
		timer.Reset(s.args.Metadata.SendInterval)
	}
}

// postMetadata sends families. The families of each header value are sent in
// separate requests.
func (e *endpoint) postMetadata(ctx context.Context, s *settings, families map[familyKey]*batch.Metadata) {
	keys := make([]familyKey, 0, len(families))
	for k := range families {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b familyKey) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.name, b.name))
	})
	deadline := e.Clock.Now().Add(s.args.Metadata.SendInterval)
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && n < s.args.Metadata.MaxSamplesPerSend && keys[n].value == keys[0].value {
			n++
		}
		r := request{message: v1, samples: n, value: keys[0].value}
		if r.value != "" {
			r.header = s.args.HeaderFromLabel.Header
		}
		var raw []byte
		for _, k := range keys[:n] {
			m := families[k]
			pb := prompb.MetricMetadata{
				Type: prompb.FromMetadataType(m.Type), MetricFamilyName: k.name, Help: m.Help, Unit: m.Unit,
			}
			var err error
			if raw, err = appendMessage(raw, 0x1a, &pb); err != nil {
				e.Log.Error("cannot encode metadata", "family", k.name, "err", err)
				return
			}
		}
		r.body = compress(nil, raw)
		if !e.postFamilies(ctx, s, &r, deadline) {
			return
		}
		keys = keys[n:]
	}
}

// postFamilies retries as Prometheus does, but only until the next interval. It
// returns false if sending further families is pointless.
func (e *endpoint) postFamilies(ctx context.Context, s *settings, r *request, deadline time.Time) bool {
	var pauses backoff.Pauses
	for attempt := 0; ; attempt++ {
		a := e.post(ctx, s, r, attempt)
		if a.err == nil {
			e.stats.metadata.Add(int64(r.samples))
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if !a.retry || e.Clock.Now().Add(a.retryAfter).After(deadline) {
			e.stats.metadataFailed.Add(int64(r.samples))
			e.Log.Warn("cannot send metadata", "families", r.samples, "err", a.err)
			return true
		}
		q := &s.args.Queue
		pauses.Pause(ctx, e.Clock, backoff.Reasons{Min: q.MinBackoff, Max: q.MaxBackoff, RetryAfter: a.retryAfter, Replaced: s.Replaced})
		if ctx.Err() != nil || s != e.settings.Load() {
			return false
		}
	}
}
