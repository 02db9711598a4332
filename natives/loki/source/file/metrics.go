package file

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a component.
type metrics struct {
	bytes, lines, lost, holes, cut, undecoded, refusals, failures prometheus.Counter

	rotations    *prometheus.CounterVec
	abandoned    *prometheus.CounterVec
	files, unmet prometheus.Gauge
	rotated      prometheus.Gauge
	lag, held    prometheus.Gauge
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_source_file_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_source_file_" + name, Help: help})
	}
	m := &metrics{
		bytes:     counter("read_bytes_total", "Bytes of lines that were read, decompressed."),
		lines:     counter("read_lines_total", "Lines that were read."),
		lost:      counter("lost_bytes_total", "Bytes of files that were not read: neither the file nor a copy of it was found, or file_rotation.max_wait had passed."),
		holes:     counter("skipped_hole_bytes_total", "Zero bytes at the start of files that were skipped: what a truncation leaves when the writer goes on at its place."),
		cut:       counter("cut_lines_total", "Pieces that were cut off lines longer than 16 MiB."),
		undecoded: counter("encoding_failures_total", "Lines that could not be decoded and were sent as they are."),
		refusals:  counter("refused_batches_total", "Attempts to send a batch that a receiver refused; it is sent again."),
		failures:  counter("positions_failures_total", "Times that the positions log could not be written."),
		rotations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_source_file_rotations_total",
			Help: "Rotations by how the file went: renamed or removed, truncated, or missed because it was rotated again before it was seen.",
		}, []string{"kind"}),
		abandoned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_source_file_abandoned_files_total",
			Help: "Rotated files that were closed although a process had them, or may have had them, open for writing: file_rotation.max_wait had passed, or too many were open.",
		}, []string{"reason"}),
		rotated: gauge("rotated_files", "Files that are open although they were renamed or deleted, because their writers may still write to them or lines are unread."),
		files:   gauge("files", "Files that are open, those that were rotated away and are not ended among them."),
		unmet:   gauge("unreadable_targets", "Targets that cannot be followed now."),
		lag:     gauge("lag_bytes", "Bytes in all files that are not read yet."),
		held:    gauge("refused_bytes", "Bytes of lines that receivers refused and that are kept to be sent again."),
	}
	for _, kind := range []string{"renamed", "truncated", "missed"} {
		m.rotations.WithLabelValues(kind)
	}
	for _, reason := range []string{byMaxWait, byNumber} {
		m.abandoned.WithLabelValues(reason)
	}
	return m
}

// countChunk counts a range that was read for the first time.
func (m *metrics) countChunk(c chunk) {
	if c.again {
		return
	}
	m.bytes.Add(float64(c.to - c.from))
	m.lines.Add(float64(len(c.lines)))
	m.undecoded.Add(float64(c.bad))
	if c.cut {
		m.cut.Inc()
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.bytes, m.lines, m.lost, m.holes, m.cut, m.undecoded, m.refusals, m.failures,
		m.rotations, m.abandoned, m.rotated, m.files, m.unmet, m.lag, m.held,
	}
}
