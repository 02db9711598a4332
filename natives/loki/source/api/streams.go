package api

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/natives/loki/push"
	"github.com/weir-run/weir/natives/loki/source"
	"github.com/weir-run/weir/natives/prometheus/rule"
)

// ttl is how long a stream of a tenant is known after its last line.
const ttl = 15 * time.Minute

// settings are what lines are labelled by, and the streams that it gave. It is
// safe for concurrent use.
type settings struct {
	clock   clock.Clock
	labels  map[string]string
	rules   rule.Rules
	streams *source.Streams
	whole   *batch.Interner // with the tenant

	mu    sync.Mutex
	texts map[string]known // by tenant and labels as they came
}

// known is what became of a stream, nil when the rules drop it.
type known struct {
	stream *batch.Stream
	asked  time.Time
}

// maxTexts bounds how many label texts are remembered.
const maxTexts = 100_000

func newSettings(a *Arguments, c clock.Clock) *settings {
	return &settings{
		clock: c, labels: a.Labels, rules: a.RelabelRules, streams: source.NewStreams(a.RelabelRules),
		whole: batch.NewInterner(ttl), texts: map[string]known{},
	}
}

// ofText returns the stream of labels as text, nil when the rules drop it. key is
// scratch memory.
func (s *settings) ofText(tenant, text string, key *[]byte) (*batch.Stream, error) {
	*key = append(append(append((*key)[:0], tenant...), 0), text...)
	now := s.clock.Now()
	s.mu.Lock()
	k, ok := s.texts[string(*key)]
	s.mu.Unlock()
	if ok && now.Sub(k.asked) < source.Recheck {
		return k.stream, nil
	}
	ls, err := push.ParseLabels(text)
	if err != nil {
		return nil, err
	}
	stream, err := s.ofLabels(tenant, ls)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts) >= maxTexts {
		clear(s.texts)
	}
	s.texts[string(*key)] = known{stream, now}
	return stream, nil
}

// ofLabels returns the stream of labels in any order, nil when the rules drop
// it. Of a name that is there twice the last one counts.
func (s *settings) ofLabels(tenant string, ls []batch.Label) (*batch.Stream, error) {
	var b batch.Builder
	for _, l := range ls {
		if l.Name == "" || !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return nil, fmt.Errorf("cannot use label %q=%q: a name must not be empty, and both must be UTF-8", l.Name, l.Value)
		}
		b.Set(l.Name, l.Value)
	}
	for name, v := range s.labels {
		b.Set(name, v)
	}
	if len(b.Labels()) == 0 {
		return nil, fmt.Errorf("a stream has no labels")
	}
	now := s.clock.Now()
	stream := s.streams.Of(b.Labels(), now)
	if stream == nil || tenant == "" {
		return stream, nil
	}
	b.Reset(stream)
	b.Set(push.TenantLabel, tenant)
	return s.whole.Intern(b.Labels(), nil, now), nil
}

// plain returns the stream of lines that come without labels.
func (s *settings) plain(tenant string) *batch.Stream {
	var b batch.Builder
	for name, v := range s.labels {
		if !strings.HasPrefix(name, "__") {
			b.Set(name, v)
		}
	}
	b.Set(push.TenantLabel, tenant)
	return s.whole.Intern(b.Labels(), nil, s.clock.Now())
}

// sweep forgets what is not used any more.
func (s *settings) sweep(now time.Time) {
	s.streams.Sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, k := range s.texts {
		if now.Sub(k.asked) >= 2*source.Recheck {
			delete(s.texts, key)
		}
	}
}

// close gives all handles back.
func (s *settings) close() {
	s.streams.Close()
	s.whole.Clear()
}
