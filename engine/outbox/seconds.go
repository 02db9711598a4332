package outbox

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Seconds counts the duration of requests by outcome. The zero value is ready
// to use. All methods are safe for concurrent use.
type Seconds struct {
	mu        sync.Mutex
	byOutcome map[string]*histogram
	all       time.Duration // sum over all requests
}

type histogram struct {
	count   uint64
	sum     float64
	buckets map[float64]uint64
}

var sendBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// Busy returns the total duration of all requests.
func (s *Seconds) Busy() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Observe counts a request.
func (s *Seconds) Observe(outcome string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byOutcome[outcome]
	if h == nil {
		h = &histogram{buckets: map[float64]uint64{}}
		if s.byOutcome == nil {
			s.byOutcome = map[string]*histogram{}
		}
		s.byOutcome[outcome] = h
	}
	s.all += d
	h.count++
	h.sum += d.Seconds()
	for _, le := range sendBuckets {
		if d.Seconds() <= le {
			h.buckets[le]++
		}
	}
}

// Collect sends a histogram per outcome. The last label of desc is the outcome.
func (s *Seconds) Collect(ch chan<- prometheus.Metric, desc *prometheus.Desc, labels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for outcome, h := range s.byOutcome {
		ch <- prometheus.MustNewConstHistogram(desc, h.count, h.sum, maps.Clone(h.buckets), append(slices.Clone(labels), outcome)...)
	}
}
