package files

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// refused counts refused reads.
var refused struct{ notRegular, tooLarge, outside, hung atomic.Uint64 }

var (
	descRefused = prometheus.NewDesc("weir_files_refused_total",
		"Files that were not read, by reason: not_regular (a FIFO, a socket, a device or a directory), too_large, outside (a link that leads out of its folder) or hung (the file system did not answer in time).", []string{"reason"}, nil)
	descHung = prometheus.NewDesc("weir_files_hung",
		"Calls of file systems that have not returned in time, and hold a thread each.", nil, nil)
	descHungSeconds = prometheus.NewDesc("weir_files_hung_seconds",
		"How long the oldest call of a file system that has not returned in time has taken so far; 0 without any.", nil, nil)
)

// Collector collects the metrics of this package for the whole process.
type Collector struct{}

var _ prometheus.Collector = Collector{}

// Describe describes the metrics.
func (Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descRefused
	ch <- descHung
	ch <- descHungSeconds
}

// Collect sends the metrics.
func (Collector) Collect(ch chan<- prometheus.Metric) {
	for reason, n := range map[string]*atomic.Uint64{"not_regular": &refused.notRegular, "too_large": &refused.tooLarge, "outside": &refused.outside, "hung": &refused.hung} {
		ch <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(n.Load()), reason)
	}
	hung, oldest := Hung(), time.Duration(0)
	if len(hung) > 0 {
		oldest = time.Since(hung[0].Since)
	}
	ch <- prometheus.MustNewConstMetric(descHung, prometheus.GaugeValue, float64(len(hung)))
	ch <- prometheus.MustNewConstMetric(descHungSeconds, prometheus.GaugeValue, oldest.Seconds())
}
