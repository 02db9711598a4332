package remotewrite

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// reasonCustomBuckets is the reason for dropping native histograms with custom
// buckets, which remote write 1.0 does not support. The name is that of
// Prometheus.
const reasonCustomBuckets = "nhcb_in_rw1_not_supported"

// unsendable returns the reason why a native histogram is dropped, or "" if it is
// sent. Most invalid histograms were dropped earlier, but a script may have
// created new ones.
func unsendable(h *batch.Histogram, m message) (reason string) {
	if m == v1 && valid.IsCustom(h) {
		return reasonCustomBuckets
	}
	if err := valid.CheckHistogram(h); err != nil {
		return valid.HistogramReason(err)
	}
	return ""
}

// sendable returns the exemplars that can be sent and counts the dropped ones.
func (e *endpoint) sendable(es []batch.Exemplar) []batch.Exemplar {
	bad := func(x batch.Exemplar) bool { return valid.CheckExemplar(x.Labels) != "" }
	if !slices.ContainsFunc(es, bad) {
		return es
	}
	var kept []batch.Exemplar // batches are immutable
	for _, x := range es {
		switch valid.CheckExemplar(x.Labels) {
		case valid.ExemplarLength:
			e.stats.exemplarsTooLong.Add(1)
		case valid.ExemplarLabels:
			e.stats.exemplarsInvalid.Add(1)
		default:
			kept = append(kept, x)
		}
	}
	return kept
}

// dropCustomBuckets counts dropped native histograms with custom buckets and logs
// a warning once.
func (e *endpoint) dropCustomBuckets(n int) {
	e.Drop(reasonCustomBuckets, n)
	if n > 0 && e.toldCustomBuckets.CompareAndSwap(false, true) {
		s := e.settings.Load()
		hint := `set protobuf_message = "` + messageV2 + `"`
		if s.args.ProtobufMessage == messageV2 {
			hint = "the endpoint does not take remote write 2.0"
		}
		e.Log.Warn("native histograms with custom buckets are dropped and counted: remote write 1.0 cannot carry them",
			"url", journal.PublicURL(s.args.URL), "hint", hint)
	}
}

// Loses returns the endpoints that drop native histograms with custom buckets.
func (a *Arguments) Loses(c component.Content) (losses []component.Loss) {
	if c != component.CustomBuckets {
		return nil
	}
	for _, e := range a.Endpoints {
		v2 := e.ProtobufMessage == messageV2
		if v2 && e.SendNativeHistograms {
			continue
		}
		l := component.Loss{Path: "endpoint", Why: "remote write 1.0 cannot carry them"}
		var set []string
		if !v2 {
			l.Path = "endpoint.protobuf_message"
			set = append(set, `protobuf_message = "`+messageV2+`"`)
		}
		if !e.SendNativeHistograms {
			set = append(set, "send_native_histograms = true")
		}
		if v2 {
			l.Path, l.Why = "endpoint.send_native_histograms", "it sends no native histograms"
		}
		l.Hint = "set " + strings.Join(set, " and ")
		if len(a.Endpoints) > 1 {
			l.Hint += " in endpoint " + e.ref().Label()
		}
		losses = append(losses, l)
	}
	return losses
}
