package api

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/loki/push"
	"github.com/weir-run/weir/natives/loki/source/internal/source"
)

// ttl is how long a stream of a tenant is known after its last line.
const ttl = 15 * time.Minute

// settings determine the labels of lines. They include a cache of streams. They
// are safe for concurrent use.
type settings struct {
	clock   clock.Clock
	labels  map[string]string
	rules   rule.Rules
	limits  Limits
	streams *source.Streams
	whole   *batch.Interner // including the tenant

	mu    sync.Mutex
	texts map[string]known // by tenant and label text
	size  int              // size of the keys of texts in bytes
}

// known is the resulting stream, nil if the rules drop it.
type known struct {
	stream *batch.Stream
	asked  time.Time
}

// maxTexts and maxTextBytes limit the cache of label texts.
const (
	maxTexts     = 100_000
	maxTextBytes = 64 << 20
)

func newSettings(a *Arguments, c clock.Clock) *settings {
	return &settings{
		clock: c, labels: a.Labels, rules: a.RelabelRules, limits: a.Limits, streams: source.NewStreams(a.RelabelRules, a.Limits.StreamLimit, func(int) {}),
		whole: batch.NewInterner(ttl), texts: map[string]known{},
	}
}

// ofText returns the stream for labels as text, or nil if the rules drop it. key
// is scratch memory.
func (s *settings) ofText(tenant, text string, key *[]byte) (*batch.Stream, error) {
	*key = append(append(append((*key)[:0], tenant...), 0), text...)
	now := s.clock.Now()
	s.mu.Lock()
	k, ok := s.texts[string(*key)]
	s.mu.Unlock()
	if ok && now.Sub(k.asked) < source.Recheck {
		return k.stream, nil
	}
	ls, err := push.ParseLabels(text, s.limits.LabelLimit)
	if errors.Is(err, push.ErrTooMany) {
		return nil, refuse("label_limit", "a stream is over a limit: %w, label_limit is %d", err, s.limits.LabelLimit)
	}
	if err != nil {
		return nil, err
	}
	stream, err := s.ofLabels(tenant, ls)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts) >= maxTexts || s.size >= maxTextBytes {
		clear(s.texts)
		s.size = 0
	}
	if _, again := s.texts[string(*key)]; !again {
		s.size += len(*key)
	}
	s.texts[string(*key)] = known{stream, now}
	return stream, nil
}

// ofLabels returns the stream for labels in any order, or nil if the rules drop
// it. If a name appears twice, the last value is used.
func (s *settings) ofLabels(tenant string, ls []batch.Label) (*batch.Stream, error) {
	if err := s.check(ls); err != nil {
		return nil, err
	}
	var b batch.Builder
	b.SetAll(ls)
	for name, v := range s.labels {
		b.Set(name, v)
	}
	if len(b.Labels()) == 0 {
		return nil, fmt.Errorf("a stream has no labels")
	}
	now := s.clock.Now()
	if s.streams.Full(b.Labels(), s.limits.StreamLimit, now) {
		return nil, s.full()
	}
	stream := s.streams.Of(b.Labels(), now)
	if stream == nil || tenant == "" {
		return stream, nil
	}
	b.Reset(stream)
	b.Set(push.TenantLabel, tenant)
	return s.tenants(&b, now)
}

// tenants returns the stream for labels with a tenant.
func (s *settings) tenants(b *batch.Builder, now time.Time) (*batch.Stream, error) {
	if source.Full(s.whole, b.Labels(), s.limits.StreamLimit, now) {
		return nil, s.full()
	}
	return s.whole.Intern(b.Labels(), nil, now), nil
}

// refused is the error for lines that are valid but exceed a limit.
type refused struct {
	reason string // the label value for metrics
	err    error
}

func (e *refused) Error() string { return e.err.Error() }

func refuse(reason, format string, args ...any) error {
	return &refused{reason, fmt.Errorf(format, args...)}
}

func (s *settings) full() error {
	return refuse("stream_limit", "a stream is over a limit: as many streams as stream_limit (%d) are known, or their labels take more than %d bytes on average", s.limits.StreamLimit, source.StreamBytes)
}

// check checks the limits for the received labels.
func (s *settings) check(ls []batch.Label) error {
	if n := s.limits.LabelLimit; n > 0 && len(ls) > n {
		return refuse("label_limit", "a stream is over a limit: it has %d labels, label_limit is %d", len(ls), n)
	}
	for _, l := range ls {
		if n := s.limits.LabelNameLengthLimit; n > 0 && len(l.Name) > n {
			return refuse("label_limit", "a stream is over a limit: label name %.60q… has %d bytes, label_name_length_limit is %d", l.Name, len(l.Name), n)
		}
		if n := s.limits.LabelValueLengthLimit; n > 0 && len(l.Value) > n {
			return refuse("label_limit", "a stream is over a limit: the value of label %.60q has %d bytes, label_value_length_limit is %d", l.Name, len(l.Value), n)
		}
		if l.Name == "" || !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return fmt.Errorf("cannot use label %.60q=%.60q: a name must not be empty, and both must be UTF-8", l.Name, l.Value)
		}
	}
	return nil
}

// plain returns the stream for lines without labels.
func (s *settings) plain(tenant string) (*batch.Stream, error) {
	var b batch.Builder
	for name, v := range s.labels {
		if !strings.HasPrefix(name, "__") {
			b.Set(name, v)
		}
	}
	b.Set(push.TenantLabel, tenant)
	return s.tenants(&b, s.clock.Now())
}

// removeUnused removes unused cache entries.
func (s *settings) removeUnused(now time.Time) {
	s.streams.Sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, k := range s.texts {
		if now.Sub(k.asked) >= 2*source.Recheck {
			delete(s.texts, key)
			s.size -= len(key)
		}
	}
}

// close releases all handles.
func (s *settings) close() {
	s.streams.Close()
	s.whole.Clear()
}
