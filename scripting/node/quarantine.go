package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/quarantine"
)

// quarantined contains a node's store and its counts, which its instances pass
// on.
type quarantined struct {
	store   *quarantine.Store
	stored  prometheus.Counter
	lost    *prometheus.CounterVec
	entries prometheus.GaugeFunc
	bytes   prometheus.GaugeFunc
}

func newQuarantined(o component.Options) *quarantined {
	q := &quarantined{
		stored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_script_quarantined_samples_total", Help: "Samples and log lines that were put into quarantine because the script failed on them.",
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_quarantine_lost_samples_total", Help: "Samples and log lines that left the quarantine without a replay: beyond a bound, damaged, or dropped by the user.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{quarantine.LostSize, quarantine.LostAge, quarantine.LostDamaged, quarantine.LostDropped} {
		q.lost.WithLabelValues(reason)
	}
	q.store = quarantine.New(quarantine.Dir(o.StoragePath, o.ID), o.Clock, o.Logger, func(reason string, lost quarantine.Entry) {
		q.lost.WithLabelValues(reason).Add(float64(lost.Records))
		signal := batch.SignalMetrics
		if lost.Signal == batch.SignalLogs.String() {
			signal = batch.SignalLogs
		}
		o.Stats.CountDropped(signal, "quarantine", lost.Records)
	})
	q.entries = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_script_quarantine_entries", Help: "Batches, or parts of batches, in quarantine."},
		func() float64 { n, _ := q.store.Size(); return float64(n) })
	q.bytes = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_script_quarantine_bytes", Help: "Size of the quarantine on disk."},
		func() float64 { _, n := q.store.Size(); return float64(n) })
	return q
}

func (q *quarantined) collectors() []prometheus.Collector {
	return []prometheus.Collector{q.stored, q.lost, q.entries, q.bytes}
}

// payload is a batch of either signal.
type payload struct{ outbox.Batch }

// source returns the Source of the batch.
func (p payload) source() uint64 {
	if p.Logs != nil {
		return p.Logs.Source
	}
	return p.Metrics.Source
}

// latest returns the latest time of the batch in Unix ms. For lines, whose
// times receivers do not use, it returns the time of c.
func (p payload) latest(c clock.Clock) int64 {
	if p.Logs != nil || p.Metrics.Len() == 0 {
		return c.Now().UnixMilli()
	}
	return slices.Max(p.Metrics.T)
}

// rows returns the part with the given rows, which are ascending.
func (p payload) rows(rows []int) payload {
	if p.Logs != nil {
		return payload{outbox.Batch{Logs: p.Logs.Rows(rows)}}
	}
	return payload{outbox.Batch{Metrics: p.Metrics.Rows(rows)}}
}

// text returns the batch in text form.
func (p payload) text() []byte {
	if p.Logs != nil {
		return batch.AppendLogsText(nil, p.Logs)
	}
	return batch.AppendText(nil, p.Metrics)
}

// failures are the records of a batch on which a call failed, by script line.
type failures struct {
	err  *scripting.Error // the first one
	rows []int
}

// quarantineRecord records a row for the quarantine.
func (k *call) quarantineRecord(row int, e *scripting.Error) {
	i := slices.IndexFunc(k.kept, func(f failures) bool { return f.err.Hook == e.Hook && f.err.Pos() == e.Pos() })
	if i < 0 {
		i = len(k.kept)
		k.kept = append(k.kept, failures{err: e})
	}
	k.kept[i].rows = append(k.kept[i].rows, row)
}

// store puts the records on which the call failed into quarantine. It stores
// them unchanged, so that any later version of the script can process them.
// whole is an error that affects the whole batch, or nil.
func (k *call) store(b payload, whole *scripting.Error) error {
	if k.observe != nil {
		return nil // tests have no disk
	}
	if whole != nil {
		k.kept = []failures{{err: whole}}
	}
	for _, f := range k.kept {
		part := b
		if f.rows != nil {
			slices.Sort(f.rows)
			part = b.rows(slices.Compact(f.rows))
		}
		if err := k.c.storeEntry(part, f.err); err != nil {
			return err
		}
	}
	return nil
}

func (c *Component) storeEntry(b payload, e *scripting.Error) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot put a batch into quarantine: %w", err)
	}
	q := c.mem.quarantine
	_, err = q.store.Put(quarantine.Entry{
		Node: c.opts.ID, Script: c.script.Name, File: c.script.File.Name, Version: c.script.Version, Args: c.argsHash,
		Signal: b.Signal().String(), Records: b.Len(), Error: raw, Text: e.Error(),
	}, b.text())
	if err == nil {
		q.stored.Add(float64(b.Len()))
	}
	return err
}

// hashArgs returns a hash that identifies arguments without revealing them.
func hashArgs(values map[string]any) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(h, "%q %#v\n", name, hashable(values[name]))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// hashable converts a value to one whose text is always the same.
func hashable(v any) any {
	switch v := v.(type) {
	case scripting.Secret:
		return v.Reveal()
	case []any:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = fmt.Sprintf("%#v", hashable(e))
		}
		return out
	case map[string]any:
		var out []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, fmt.Sprintf("%q %#v", k, hashable(v[k])))
		}
		return out
	}
	return v
}
