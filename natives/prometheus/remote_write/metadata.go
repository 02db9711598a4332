package remotewrite

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/batch"
)

// metadata collects the metadata of the families that come by. Each source is
// looked at once an interval, which is enough to know what is alive and costs
// nothing per sample in between.
type metadata struct {
	mu       sync.Mutex
	seen     map[uint64]bool // sources, this interval
	families map[string]*batch.Metadata
}

func newMetadata() *metadata {
	return &metadata{seen: map[uint64]bool{}, families: map[string]*batch.Metadata{}}
}

func (m *metadata) collect(s *settings, b *batch.Metrics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[b.Source] {
		return
	}
	m.seen[b.Source] = true
	var last *batch.Metadata
	var lastName string
	for _, series := range b.Series {
		meta := series.Meta()
		if meta == nil {
			continue
		}
		wire := series.Wire()
		if s.labels != nil {
			if wire = s.labels.wire(series); wire == "" {
				continue
			}
		}
		name := wireName(wire)
		if meta == last && name == lastName {
			continue
		}
		last, lastName = meta, name
		if f := family(name, meta.Type); f != "" {
			m.families[f] = meta
		}
	}
}

// take returns what was collected and begins a new interval.
func (m *metadata) take() map[string]*batch.Metadata {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families
	m.families = make(map[string]*batch.Metadata, len(f))
	clear(m.seen)
	return f
}

// family returns the name of the metric family that a series belongs to.
func family(name string, t model.MetricType) string {
	suffixes := []string{}
	switch t {
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

// wireName returns the metric's name in labels of the wire form.
func wireName(wire string) string {
	for len(wire) > 0 {
		size, n := wireUvarint(wire[1:])
		label := wire[1+n : 1+n+size]
		wire = wire[1+n+size:]
		size, n = wireUvarint(label[1:])
		name := label[1+n : 1+n+size]
		if name != model.MetricNameLabel {
			continue
		}
		label = label[1+n+size:]
		_, n = wireUvarint(label[1:])
		return label[1+n:]
	}
	return ""
}

func wireUvarint(s string) (v, n int) {
	for shift := 0; ; shift += 7 {
		c := s[n]
		v |= int(c&0x7f) << shift
		n++
		if c < 0x80 {
			return v, n
		}
	}
}

// sendMetadata sends what was collected every interval until ctx ends. It does
// not go through the journal: it comes again.
func (e *endpoint) sendMetadata(ctx context.Context) {
	s := e.settings.Load()
	// The first time sooner, for who waits to see it.
	timer := e.clock.NewTimer(min(s.args.Metadata.SendInterval, 10*time.Second))
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			if families := e.meta.take(); s.args.Metadata.Send {
				e.postMetadata(ctx, s, families)
			}
		case <-s.replaced:
		case <-ctx.Done():
			return
		}
		s = e.settings.Load()
		timer.Reset(s.args.Metadata.SendInterval)
	}
}

// postMetadata retries as Prometheus does, but no longer than until the next
// interval.
func (e *endpoint) postMetadata(ctx context.Context, s *settings, families map[string]*batch.Metadata) {
	names := make([]string, 0, len(families))
	for n := range families {
		names = append(names, n)
	}
	slices.Sort(names)
	deadline := e.clock.Now().Add(s.args.Metadata.SendInterval)
	for chunk := range slices.Chunk(names, s.args.Metadata.MaxSamplesPerSend) {
		var raw []byte
		for _, n := range chunk {
			m := families[n]
			pb := prompb.MetricMetadata{
				Type: prompb.FromMetadataType(m.Type), MetricFamilyName: n, Help: m.Help, Unit: m.Unit,
			}
			var err error
			if raw, err = appendMessage(raw, 0x1a, &pb); err != nil {
				e.log.Error("cannot encode metadata", "family", n, "err", err)
				return
			}
		}
		payload := snappy.Encode(nil, raw)
		backoff := s.args.Queue.MinBackoff
		for attempt := 0; ; attempt++ {
			a := e.post(ctx, s, payload, attempt)
			if a.err == nil {
				e.stats.metadata.Add(int64(len(chunk)))
				break
			}
			if ctx.Err() != nil {
				return
			}
			wait := max(backoff, min(a.retryAfter, maxRetryAfter))
			if !a.retry || e.clock.Now().Add(wait).After(deadline) {
				e.stats.metadataFailed.Add(int64(len(chunk)))
				e.log.Warn("cannot send metadata", "families", len(chunk), "err", a.err)
				break
			}
			backoff = min(2*backoff, s.args.Queue.MaxBackoff)
			t := e.clock.NewTimer(wait)
			select {
			case <-t.C():
			case <-s.replaced:
				t.Stop()
				return
			case <-ctx.Done():
				t.Stop()
				return
			}
		}
	}
}
