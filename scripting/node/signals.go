package node

import (
	"math"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// metricsSignal is the signal of samples.
type metricsSignal struct{}

func (metricsSignal) bit() batch.Signals { return batch.SignalMetrics }

func (metricsSignal) hooks(d *scripting.Definition) (labels, whole bool) { return d.Series, d.Metrics }

func (metricsSignal) remember(cache *view.Cache, b *batch.Metrics) (view.Result[*batch.Metrics], bool) {
	return cache.Remembered(b)
}

func (metricsSignal) split(s *sharding, b *batch.Metrics) *split[*batch.Metrics] {
	return s.splitMetrics(b)
}

func (metricsSignal) column(b *batch.Metrics) []*batch.Series { return b.Series }

func (metricsSignal) slice(b *batch.Metrics, rows *batch.Rows, from int) *batch.Metrics {
	in := batch.NewSelection(b.Series, rows).Apply(b)
	if in == b {
		return b
	}
	return in.Along(uint64(from)).Along(uint64(in.Len())) // see splitMetrics
}

func (metricsSignal) join(b *batch.Metrics, ins, outs []*batch.Metrics) *batch.Metrics {
	return joinMetrics(b, ins, outs, batch.JoinSeries)
}

func (metricsSignal) joinOther(b *batch.Metrics, set int, outs []result, joined *result) {
	joinLines(b.Source, b.Way, set, outs, joined)
}

func (metricsSignal) open(k *call, b *batch.Metrics) {
	k.opened |= batch.SignalMetrics
	k.w.win.Reset(b, k.c.instance.Cache, k.Now)
	k.w.limits.Logs = k.openLines(b.Source, b.Way)
}

func (metricsSignal) window(w *worker) window[*batch.Metrics] { return &w.win }

func (metricsSignal) runLabels(w *worker) error { return w.win.RunSeries(w.series) }

func (metricsSignal) runBatch(w *worker) error { return w.vm.Metrics(&w.win) }

func (metricsSignal) result(out output[*batch.Metrics]) result { return result{samples: out} }

func (metricsSignal) output(r result) output[*batch.Metrics] { return r.samples }

func (metricsSignal) same(a *batch.Metrics, i int, b *batch.Metrics, j int) bool {
	return a.Series[i].Equal(b.Series[j]) && a.T[i] == b.T[j] && math.Float64bits(a.V[i]) == math.Float64bits(b.V[j]) &&
		sameHistogram(histogramOf(a, i), histogramOf(b, j))
}

// histogramOf returns the native histogram of a row; the zero value for none.
func histogramOf(b *batch.Metrics, row int) (h batch.Histogram) {
	if i, ok := slices.BinarySearchFunc(b.Histograms, row, func(h batch.Histogram, row int) int { return h.Row - row }); ok {
		h = b.Histograms[i]
	}
	return h
}

func sameHistogram(a, b batch.Histogram) bool {
	return (a.Int == b.Int || a.Int != nil && b.Int != nil && a.Int.Equals(b.Int)) &&
		(a.Float == b.Float || a.Float != nil && b.Float != nil && a.Float.Equals(b.Float))
}

func (metricsSignal) payload(b *batch.Metrics) payload { return payload{outbox.Batch{Metrics: b}} }

// logsSignal is the signal of log lines.
type logsSignal struct{}

func (logsSignal) bit() batch.Signals { return batch.SignalLogs }

func (logsSignal) hooks(d *scripting.Definition) (labels, whole bool) { return d.Stream, d.Logs }

func (logsSignal) remember(cache *view.Cache, b *batch.Logs) (view.Result[*batch.Logs], bool) {
	return cache.RememberedLogs(b)
}

func (logsSignal) split(s *sharding, b *batch.Logs) *split[*batch.Logs] { return s.splitLogs(b) }

func (logsSignal) column(b *batch.Logs) []*batch.Series { return b.Stream }

func (logsSignal) slice(b *batch.Logs, rows *batch.Rows, _ int) *batch.Logs { return b.Only(rows) }

func (logsSignal) join(b *batch.Logs, _, outs []*batch.Logs) *batch.Logs {
	return batch.JoinLogs(b.Source, b.Way, outs)
}

func (logsSignal) joinOther(_ *batch.Logs, set int, outs []result, joined *result) {
	joinSamples(set, outs, joined)
}

func (logsSignal) open(k *call, b *batch.Logs) {
	k.opened |= batch.SignalLogs
	k.w.lines.Reset(b, k.c.instance.Cache, k.Now)
	// Series that are missing from the emitted samples of a batch have not ended.
	k.w.limits.Metrics = k.openSamples(batch.PushSourceOf(b.Source), b.Way)
}

func (logsSignal) window(w *worker) window[*batch.Logs] { return &w.lines }

func (logsSignal) runLabels(w *worker) error { return w.lines.RunSeries(w.stream) }

func (logsSignal) runBatch(w *worker) error { return w.vm.Logs(&w.lines) }

func (logsSignal) result(out output[*batch.Logs]) result { return result{lines: out} }

func (logsSignal) output(r result) output[*batch.Logs] { return r.lines }

func (logsSignal) same(a *batch.Logs, i int, b *batch.Logs, j int) bool {
	return a.Stream[i].Equal(b.Stream[j]) && a.T[i] == b.T[j] && a.Line[i] == b.Line[j] && slices.Equal(a.MetaOf(i), b.MetaOf(j))
}

func (logsSignal) payload(b *batch.Logs) payload { return payload{outbox.Batch{Logs: b}} }

// joinLines appends the lines of outs in a set of ways to joined, and
// joinSamples the samples.
func joinLines(source, way uint64, set int, outs []result, joined *result) {
	var lines []*batch.Logs
	for _, o := range outs {
		if o.lines != nil {
			lines = append(lines, o.lines[set])
		}
	}
	if lines != nil {
		joined.lines = append(joined.lines, batch.JoinLogs(source, way, lines))
	}
}

func joinSamples(set int, outs []result, joined *result) {
	var samples []*batch.Metrics
	for _, o := range outs {
		if o.samples != nil {
			samples = append(samples, o.samples[set])
		}
	}
	if samples != nil {
		joined.samples = append(joined.samples, batch.JoinMetrics(samples))
	}
}
