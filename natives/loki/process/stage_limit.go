package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// LimitArguments are the arguments of stage.limit.
type LimitArguments struct {
	// How many lines a second may pass.
	Rate float64 `alloy:"rate,attr"`
	// How many lines may pass at once after a time with less.
	Burst int `alloy:"burst,attr"`
	// Whether lines above the limit are dropped. Otherwise, the source waits.
	Drop bool `alloy:"drop,attr,optional"`
	// A label whose values each have their own limit. Lines without the label are not
	// limited. It requires drop.
	ByLabelName string `alloy:"by_label_name,attr,optional"`
	// Number of values of by_label_name that are kept in memory; at least 10000.
	MaxDistinctLabels int `alloy:"max_distinct_labels,attr,optional"`
}

// minDistinctLabels is the minimum of max_distinct_labels.
const minDistinctLabels = 10_000

// SetToDefault sets max_distinct_labels to its minimum.
func (a *LimitArguments) SetToDefault() { *a = LimitArguments{MaxDistinctLabels: minDistinctLabels} }

// Validate returns all errors in the arguments, joined.
func (a *LimitArguments) Validate() error {
	var errs []error
	if !(a.Rate > 0) {
		errs = append(errs, fmt.Errorf("rate is %v, must be greater than 0", a.Rate))
	}
	if a.Burst <= 0 {
		errs = append(errs, fmt.Errorf("burst is %d, must be greater than 0", a.Burst))
	}
	if a.ByLabelName != "" && !a.Drop {
		errs = append(errs, errors.New("by_label_name needs drop = true"))
	}
	return errors.Join(errs...)
}

// Warnings reports a value of max_distinct_labels that is below the minimum.
func (a *LimitArguments) Warnings() []string {
	switch {
	case a.MaxDistinctLabels != minDistinctLabels && a.ByLabelName == "":
		return []string{"max_distinct_labels has no effect without by_label_name"}
	case a.MaxDistinctLabels < minDistinctLabels:
		return []string{fmt.Sprintf("max_distinct_labels is below %d, which it is then", minDistinctLabels)}
	}
	return nil
}

// limitStage limits the number of rows per second.
type limitStage struct {
	LimitArguments
	*limits
}

// limits are the token buckets of a stage. They survive reloads that do not
// change the stage.
type limits struct {
	mu       sync.Mutex
	all      bucket
	new, old map[string]*bucket // by value of the label; nil without by_label_name
}

// bucket is a token bucket. It is refilled as time passes and may be negative.
type bucket struct {
	tokens float64
	at     time.Time // the time of the last refill
	fresh  bool      // not used yet
}

func (a *LimitArguments) compile(c *compiler) (stage, error) {
	s := &limitStage{LimitArguments: *a}
	s.MaxDistinctLabels = max(s.MaxDistinctLabels, minDistinctLabels)
	s.limits = keepState(c, *a, func() *limits { return &limits{all: bucket{fresh: true}, new: map[string]*bucket{}} })
	return s, nil
}

const limitReason = "ratelimit_drop_stage"

func (s *limitStage) run(ctx context.Context, p *pass) {
	now := p.pl.clock.Now()
	switch {
	case s.ByLabelName != "":
		s.mu.Lock()
		defer s.mu.Unlock()
		p.drop(limitReason, func(row int) bool { return s.allowsLabel(p, row, now) })
	case s.Drop:
		s.mu.Lock()
		defer s.mu.Unlock()
		p.drop(limitReason, func(int) bool { return s.allows(&s.all, now) })
	default:
		s.wait(ctx, p.pl.clock, len(p.rows))
	}
}

// wait waits until n rows may pass or ctx ends. If ctx ends, the send that
// follows is refused and the batch is delivered again.
func (s *limitStage) wait(ctx context.Context, c clock.Clock, n int) {
	s.mu.Lock()
	s.fill(&s.all, c.Now())
	s.all.tokens -= float64(n)
	owed := -s.all.tokens
	s.mu.Unlock()
	if owed <= 0 {
		return
	}
	// The number of seconds may exceed the range of a Duration.
	for left := owed / s.Rate; left > 0; left -= 3600 {
		if clock.Sleep(ctx, c, time.Duration(min(left, 3600)*float64(time.Second))) != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all.tokens += float64(n)
			return
		}
	}
}

// fill refills a bucket. The caller holds mu.
func (s *limitStage) fill(b *bucket, now time.Time) {
	if b.fresh {
		b.tokens, b.at, b.fresh = float64(s.Burst), now, false
		return
	}
	if d := now.Sub(b.at); d > 0 {
		b.tokens, b.at = min(b.tokens+d.Seconds()*s.Rate, float64(s.Burst)), now
	}
}

// allows reports whether a row may pass. The caller holds mu.
func (s *limitStage) allows(b *bucket, now time.Time) bool {
	s.fill(b, now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// allowsLabel reports whether a row may pass by the value of its label. The
// caller holds mu.
func (s *limitStage) allowsLabel(p *pass, row int, now time.Time) bool {
	v := p.stream[row].Label(s.ByLabelName)
	if v == "" {
		return true
	}
	if s.allows(s.bucketOf(p, v), now) {
		return true
	}
	p.pl.mem.counts.limited.WithLabelValues(s.ByLabelName, v).Inc()
	return false
}

// bucketOf returns the bucket of a value. If there are too many, it removes
// buckets that have not been used for a long time. The caller holds mu.
func (s *limitStage) bucketOf(p *pass, v string) *bucket {
	if b := s.new[v]; b != nil {
		return b
	}
	b := s.old[v]
	if b == nil {
		b = &bucket{fresh: true}
	}
	if len(s.new) >= s.MaxDistinctLabels {
		s.old, s.new = s.new, map[string]*bucket{}
		p.pl.mem.counts.limited.DeletePartialMatch(map[string]string{"label_name": s.ByLabelName})
	}
	s.new[v] = b
	return b
}
