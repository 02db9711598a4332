package process

import "github.com/prometheus/client_golang/prometheus"

// counts are the counters of some stages. They belong to the node and survive its
// components.
type counts struct {
	limited      *prometheus.CounterVec // by label
	truncated    *prometheus.CounterVec // by field
	criFlushed   prometheus.Counter
	criTruncated prometheus.Counter
	multilineCut prometheus.Counter
}

func newCounts() *counts {
	opts := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	c := &counts{
		limited: prometheus.NewCounterVec(opts("loki_process_dropped_lines_by_label_total",
			"Lines that stage.limit dropped, by the value of by_label_name, of those that were seen lately."), []string{"label_name", "label_value"}),
		truncated: prometheus.NewCounterVec(opts("loki_process_truncated_fields_total",
			"Lines, labels, extracted values and structured metadata that stage.truncate cut."), []string{"field"}),
		criFlushed: prometheus.NewCounter(opts("loki_process_cri_partial_lines_flushed_total",
			"Partial lines that stage.cri sent before their end came: there were more than max_partial_lines, or one was longer than 16 MiB or all than 64 MiB.")),
		criTruncated: prometheus.NewCounter(opts("loki_process_cri_lines_truncated_total",
			"Lines that stage.cri cut because of max_partial_line_size.")),
		multilineCut: prometheus.NewCounter(opts("weir_loki_process_multiline_cut_blocks_total",
			"Blocks that stage.multiline sent before their end came: one was longer than 16 MiB, or all that waited were longer than 64 MiB.")),
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *counts) Describe(ch chan<- *prometheus.Desc) {
	for _, of := range c.all() {
		of.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *counts) Collect(ch chan<- prometheus.Metric) {
	for _, of := range c.all() {
		of.Collect(ch)
	}
}

func (c *counts) all() []prometheus.Collector {
	return []prometheus.Collector{c.limited, c.truncated, c.criFlushed, c.criTruncated, c.multilineCut}
}
