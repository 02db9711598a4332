package outbox

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/journal"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"endpoint"}, labels...), nil)
}

var (
	descBytes   = desc("weir_journal_size_bytes", "Size of the journal on disk.")
	descAge     = desc("weir_journal_oldest_age_seconds", "Age of the oldest pending block; 0 when none is pending.")
	descBlocks  = desc("weir_journal_pending_blocks", "Blocks in the journal that are not done.")
	descDropped = desc("weir_journal_blocks_dropped_total", "Blocks that fell off the journal, by reason; of a block whose header is damaged nobody knows how many samples it had.", "reason")
	descSkipped = desc("weir_journal_skipped_bytes_total", "Bytes in the journal that were no blocks: damage and unfinished writes.")
)

// Describe sends the descriptions of what Collect sends.
func Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBytes, descAge, descBlocks, descDropped, descSkipped} {
		ch <- d
	}
}

// Collect sends a journal's figures; endpoint is what it sends to, in words.
func Collect(ch chan<- prometheus.Metric, endpoint string, st journal.Stats, now time.Time) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, t, v, append([]string{endpoint}, labels...)...)
	}
	age := 0.0
	if !st.Oldest.IsZero() {
		age = max(now.Sub(st.Oldest).Seconds(), 0) // the clock may have been set back
	}
	put(descBytes, prometheus.GaugeValue, float64(st.Bytes))
	put(descAge, prometheus.GaugeValue, age)
	put(descBlocks, prometheus.GaugeValue, float64(st.Blocks))
	for _, reason := range journal.DropReasons {
		put(descDropped, prometheus.CounterValue, float64(st.DroppedBlocks[reason]), reason)
	}
	put(descSkipped, prometheus.CounterValue, float64(st.SkippedBytes))
}
