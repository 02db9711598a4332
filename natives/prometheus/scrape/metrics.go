package scrape

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// Outcomes of a scrape: the values of the label outcome.
const (
	outcomeOK          = "ok"
	outcomeFailed      = "request_failed"
	outcomeTimeout     = "timeout"
	outcomeStatus      = "bad_status"
	outcomeBodySize    = "body_size_limit"
	outcomeInvalid     = "invalid_body"
	outcomeSampleLimit = "sample_limit"
	outcomeBucketLimit = "bucket_limit"
	outcomeLabelLimit  = "label_limit"
	outcomeTargetLimit = "target_limit"
)

// metrics are the metrics of a component.
type metrics struct {
	targets prometheus.Gauge
	// unscraped is the number of targets that are invalid or exceed the limit.
	unscraped prometheus.Gauge
	scrapes   *prometheus.CounterVec
	bytes     prometheus.Counter
	missed    prometheus.Counter
	large     prometheus.Counter
	// reduced counts native histograms, and exemplarsDropped counts exemplars, by
	// reason.
	reduced, exemplarsDropped *prometheus.CounterVec

	mu   sync.Mutex
	told time.Time // time of the last log line about missed scrapes
}

// tellMissed reports whether a log line about missed scrapes is due. Usually, all
// targets miss their scrapes at the same time.
func (m *metrics) tellMissed(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.told) < time.Minute {
		return false
	}
	m.told = now
	return true
}

func newMetrics() *metrics {
	m := &metrics{
		targets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_scrape_targets",
			Help: "Targets that are scraped.",
		}),
		unscraped: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_scrape_targets_unscraped",
			Help: "Targets that are not scraped, being invalid or too many.",
		}),
		scrapes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_scrape_scrapes_total",
			Help: "Scrapes by how they ended.",
		}, []string{"outcome"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_scrape_body_bytes_total",
			Help: "Uncompressed bytes of the bodies that were read.",
		}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_scrape_missed_total",
			Help: "Scrapes that were left out because weir or its machine stood still for more than a second at their time.",
		}),
		large: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_scrape_large_total",
			Help: fmt.Sprintf("Scrapes with more than %d samples of targets for which no sample_limit is set.", largeScrape),
		}),
		reduced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_scrape_histograms_reduced_total",
			Help: "Native histograms whose resolution was reduced, by the limit that asked for it.",
		}, []string{"reason"}),
		exemplarsDropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_scrape_exemplars_dropped_total",
			Help: "Exemplars that were dropped, by reason. Exemplars that a target repeats do not count.",
		}, []string{"reason"}),
	}
	for _, r := range []string{reducedByFactor, reducedByLimit} {
		m.reduced.WithLabelValues(r)
	}
	for _, r := range []string{valid.ExemplarLength, valid.ExemplarLabels, exemplarOrder} {
		m.exemplarsDropped.WithLabelValues(r)
	}
	for _, o := range []string{
		outcomeOK, outcomeFailed, outcomeTimeout, outcomeStatus, outcomeBodySize, outcomeInvalid,
		outcomeSampleLimit, outcomeBucketLimit, outcomeLabelLimit, outcomeTargetLimit,
	} {
		m.scrapes.WithLabelValues(o)
	}
	return m
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.targets, m.unscraped, m.scrapes, m.bytes, m.missed, m.large, m.reduced, m.exemplarsDropped}
}
