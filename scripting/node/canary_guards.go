package node

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
)

// versionCounts count what an instance has done with batches since it began. Parts of
// a batch that the canary got a share of count as calls of their own.
type versionCounts struct {
	calls, failed, records, dropped, emitted, nanos atomic.Int64
	// calls that have returned, and their records
	doneCalls, doneRecords atomic.Int64
}

// figures are the values of versionCounts at one time.
type figures struct {
	Calls   int64 `json:"calls"`
	Failed  int64 `json:"failed_calls"`
	In      int64 `json:"records_in"`
	Out     int64 `json:"records_out"`
	Dropped int64 `json:"records_dropped"`
	Nanos   int64 `json:"ns"`
}

// read returns the figures. Calls are read last: no share is too large because a call is
// in progress.
func (c *versionCounts) read() figures {
	f := figures{Failed: c.failed.Load(), Dropped: c.dropped.Load(), Nanos: c.nanos.Load(), Calls: c.calls.Load(), In: c.records.Load()}
	f.Out = max(0, f.In-f.Dropped+c.emitted.Load())
	return f
}

// readDone is read with the calls that have returned: no share is too small because a call
// is in progress.
func (c *versionCounts) readDone() figures {
	calls, records := c.doneCalls.Load(), c.doneRecords.Load()
	f := c.read()
	f.Calls, f.In = calls, records
	return f
}

// share is n of all, 0 if all is 0.
func share(n, all int64) float64 { return float64(n) / float64(max(all, 1)) }

// How much a canary must have processed before a guard judges it: shares of few
// records, and times of few calls, say little.
const (
	minDropRecords = 100
	minTimeRecords = 1000
	// callAllowance is what each call of a canary may take beyond the time for its
	// records: its batches are smaller than those of the running version.
	callAllowance = 200 * time.Microsecond
)

// check returns the guard that does not hold. last says that the time of the canary is
// over: shares of few records count too.
func (cn *canary) check(last bool) error {
	canary, stable := cn.inner.counts.read(), cn.stable.counts.readDone()
	if limit := share(stable.Failed, stable.Calls) + cn.settings.MaxErrors; share(canary.Failed, canary.Calls) > limit {
		err := fmt.Errorf("%d of %d calls failed (%s; the running version: %s), the limit is script.canary.max_errors = %v",
			canary.Failed, canary.Calls, percentOf(canary.Failed, canary.Calls), percentOf(stable.Failed, stable.Calls), cn.settings.MaxErrors)
		if e := cn.inner.report.lastError(); e != nil {
			return fmt.Errorf("%w: %w", err, e)
		}
		return err
	}
	if canary.In >= minDropRecords || last {
		before := share(stable.Dropped, stable.In)
		// A canary of few series may have more of those that the running version drops.
		chance := 2 * math.Sqrt(before*(1-before)/float64(max(cn.countSeries(), 1)))
		if share(canary.Dropped, canary.In) > before+cn.settings.MaxDropIncrease+chance {
			return fmt.Errorf("it dropped %d of %d records (%s; the running version: %s), the limit is script.canary.max_drop_increase = %v",
				canary.Dropped, canary.In, percentOf(canary.Dropped, canary.In), percentOf(stable.Dropped, stable.In), cn.settings.MaxDropIncrease)
		}
	}
	if canary.In >= minTimeRecords && stable.In >= minTimeRecords {
		each := float64(stable.Nanos) / float64(stable.In)
		if float64(canary.Nanos) > cn.settings.MaxSlowdown*each*float64(canary.In)+float64(canary.Calls)*float64(callAllowance) {
			return fmt.Errorf("it took %.0f ns per record (the running version: %.0f ns), the limit is script.canary.max_slowdown = %v",
				float64(canary.Nanos)/float64(canary.In), each, cn.settings.MaxSlowdown)
		}
	}
	return nil
}

func percentOf(n, all int64) string { return percent(share(n, all)) }

// outputSeries counts the series of samples that a version made in the last batch of
// each origin.
type outputSeries struct {
	mu sync.Mutex
	by map[batch.Origin]int
}

// note notes what became of a share of b.
func (o *outputSeries) note(b payload, out result) {
	if b.Metrics == nil || out.samples == nil {
		return
	}
	n := 0
	for _, m := range out.samples {
		n = max(n, m.Len())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = map[batch.Origin]int{}
	}
	o.by[b.Metrics.Origin()] = n
}

func (o *outputSeries) count() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, of := range o.by {
		n += of
	}
	return n
}

// versionCollector shows what each version of a node does.
type versionCollector struct{ m *memory }

var (
	versionRecords = prometheus.NewDesc("weir_script_version_records_total",
		"Samples and log lines that a version of the script has processed since it began, by what became of them.", []string{"version", "outcome"}, nil)
	versionCalls = prometheus.NewDesc("weir_script_version_calls_total",
		"Batches, and shares of batches, that a version of the script has processed since it began.", []string{"version"}, nil)
	versionFailed = prometheus.NewDesc("weir_script_version_failed_calls_total",
		"Batches, and shares of batches, in which a version of the script had an error.", []string{"version"}, nil)
	versionSeconds = prometheus.NewDesc("weir_script_version_seconds_total",
		"Time that a version of the script took to process batches, in seconds.", []string{"version"}, nil)
	versionSeries = prometheus.NewDesc("weir_script_version_series",
		"Series that a version of the script made of the last batches while a canary runs.", []string{"version"}, nil)
)

// Describe sends the metrics' descriptions.
func (v versionCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{versionRecords, versionCalls, versionFailed, versionSeconds, versionSeries} {
		to <- d
	}
}

// Collect sends the metrics.
func (v versionCollector) Collect(to chan<- prometheus.Metric) {
	stable := v.m.newest()
	if stable == nil {
		return
	}
	send := func(c *versionCounts, version string) {
		f := c.read()
		counter := func(d *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, append([]string{version}, labels...)...)
		}
		counter(versionRecords, float64(f.In), "in")
		counter(versionRecords, float64(f.Out), "out")
		counter(versionRecords, float64(f.Dropped), "dropped")
		counter(versionCalls, float64(f.Calls))
		counter(versionFailed, float64(f.Failed))
		counter(versionSeconds, time.Duration(f.Nanos).Seconds())
	}
	send(&stable.counts, "stable")
	if cn := stable.canary.Load(); cn != nil {
		send(&cn.inner.counts, "canary")
		to <- prometheus.MustNewConstMetric(versionSeries, prometheus.GaugeValue, float64(cn.stableOutput.count()), "stable")
		to <- prometheus.MustNewConstMetric(versionSeries, prometheus.GaugeValue, float64(cn.output.count()), "canary")
	}
}
