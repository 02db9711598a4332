package receivehttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// appended is the storage behind Prometheus's handler. It makes the checks of the
// TSDB's head for single samples, and stores all valid samples.
type appended struct {
	committed, open []string
}

func (a *appended) Appender(context.Context) storage.Appender { return a }

func show(ls labels.Labels) string {
	var out []batch.Label
	ls.WithoutEmpty().Range(func(l labels.Label) { out = append(out, batch.Label{Name: l.Name, Value: l.Value}) })
	return fmt.Sprint(out)
}

func (a *appended) add(format string, args ...any) (storage.SeriesRef, error) {
	a.open = append(a.open, fmt.Sprintf(format, args...))
	return 0, nil
}

func (a *appended) Append(_ storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	return a.add("%s @%d %#x", show(l), t, math.Float64bits(v))
}

func (a *appended) AppendHistogram(_ storage.SeriesRef, l labels.Labels, t int64, h *histogram.Histogram, fh *histogram.FloatHistogram) (storage.SeriesRef, error) {
	if h != nil {
		if err := h.Validate(); err != nil {
			return 0, err
		}
		return a.add("%s @%d int %v %v", show(l), t, h.CounterResetHint, h)
	}
	if err := fh.Validate(); err != nil {
		return 0, err
	}
	return a.add("%s @%d float %v %v", show(l), t, fh.CounterResetHint, fh)
}

func (a *appended) AppendExemplar(_ storage.SeriesRef, l labels.Labels, e exemplar.Exemplar) (storage.SeriesRef, error) {
	// Like tsdb/exemplar.go.
	if _, dup := e.Labels.HasDuplicateLabelNames(); dup {
		return 0, errors.New("duplicate")
	}
	n := 0
	e.Labels.Range(func(l labels.Label) { n += len([]rune(l.Name)) + len([]rune(l.Value)) })
	if n > exemplar.ExemplarMaxLabelSetLength {
		return 0, storage.ErrExemplarLabelLength
	}
	var ls []batch.Label
	e.Labels.WithoutEmpty().Range(func(l labels.Label) { ls = append(ls, batch.Label{Name: l.Name, Value: l.Value}) })
	return a.add("%s exemplar %v %v@%d", show(l), ls, e.Value, e.Ts)
}

func (a *appended) Commit() error {
	a.committed, a.open = append(a.committed, a.open...), nil
	return nil
}

func (a *appended) Rollback() error { a.open = nil; return nil }

func (a *appended) SetOptions(*storage.AppendOptions) {}
func (a *appended) UpdateMetadata(storage.SeriesRef, labels.Labels, metadata.Metadata) (storage.SeriesRef, error) {
	return 0, nil
}
func (a *appended) AppendSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64) (storage.SeriesRef, error) {
	return 0, nil
}
func (a *appended) AppendHistogramSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64, *histogram.Histogram, *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return 0, nil
}

// corpus returns series as clients send them, and invalid ones.
func corpus() map[string][]prompb.TimeSeries {
	stale := math.Float64frombits(batch.StaleNaN)
	withHistogram := func(hs ...prompb.Histogram) prompb.TimeSeries {
		ts := series("__name__=h a=b")
		ts.Histograms = hs
		return ts
	}
	broken := prompb.FromIntHistogram(1, tsdbutil.GenerateTestHistogram(3))
	broken.PositiveDeltas = broken.PositiveDeltas[1:]
	tooFine := prompb.FromIntHistogram(1, &histogram.Histogram{
		Schema: 20, Count: 3, Sum: 1, PositiveSpans: []histogram.Span{{Offset: 5, Length: 2}}, PositiveBuckets: []int64{1, 1},
	})
	withExemplars := series("__name__=e a=b", sample(5, 1))
	withExemplars.Exemplars = []prompb.Exemplar{
		{Labels: []prompb.Label{{Name: "trace_id", Value: "x"}}, Value: 2, Timestamp: 4},
		{Labels: []prompb.Label{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}, Value: 3, Timestamp: 5},
		{Labels: []prompb.Label{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, Value: 3, Timestamp: 6},
		{Labels: []prompb.Label{{Name: "long", Value: strings.Repeat("ü", 200)}}, Value: 3, Timestamp: 7},
		{Labels: []prompb.Label{{Name: "empty", Value: ""}}, Value: 3, Timestamp: 8},
	}
	return map[string][]prompb.TimeSeries{
		"plain":              {series("__name__=a job=x", sample(1, 1.5)), series("__name__=b job=x", sample(2, -3))},
		"many samples":       {series("__name__=a", sample(1, 1), sample(2, 2), sample(2, 2), sample(1, 0))},
		"stale and odd":      {series("__name__=a", sample(1, stale), sample(2, math.NaN()), sample(3, math.Inf(-1)), sample(-5, 0), sample(1<<40, 5e-324))},
		"other NaN":          {series("__name__=a", sample(1, math.Float64frombits(0x7ff8000000000123)))},
		"unsorted":           {series("z=1 __name__=a b=2", sample(1, 1)), series("b=2 __name__=a z=1", sample(2, 1))},
		"duplicate label":    {series("__name__=a x=1 x=2", sample(1, 1)), series("__name__=good", sample(1, 1))},
		"same label twice":   {series("__name__=a x=1 x=1", sample(1, 1))},
		"no name":            {series("job=x", sample(1, 1)), series("__name__=good", sample(1, 1))},
		"empty name":         {series("__name__= job=x", sample(1, 1))},
		"empty label name":   {series("__name__=a =x", sample(1, 1))},
		"empty value":        {series("__name__=a x= y=1", sample(1, 1)), series("__name__=a y=1", sample(2, 1))},
		"empty and not":      {series("__name__=a x= x=1", sample(1, 1))},
		"no labels":          {series("", sample(1, 1))},
		"UTF-8 name":         {series("__name__=métrique.öäü lab.el=☃", sample(1, 1))},
		"invalid UTF-8 name": {series("__name__=a\xff", sample(1, 1)), series("__name__=good", sample(1, 1))},
		"invalid label name": {series("__name__=a b\xff=1", sample(1, 1))},
		"invalid value":      {series("__name__=a b=\xff", sample(1, 1))},
		"long label":         {series("__name__=a b="+strings.Repeat("x", 300), sample(1, 1)), series("__name__=a b="+strings.Repeat("y", 40000), sample(1, 1))},
		"nothing":            {},
		"int histogram":      {withHistogram(prompb.FromIntHistogram(7, tsdbutil.GenerateTestHistogram(2)))},
		"float histogram":    {withHistogram(prompb.FromFloatHistogram(7, tsdbutil.GenerateTestFloatHistogram(2)))},
		"gauge histogram":    {withHistogram(prompb.FromIntHistogram(7, tsdbutil.GenerateTestGaugeHistogram(2)))},
		"NHCB": {withHistogram(prompb.FromIntHistogram(7, tsdbutil.GenerateTestCustomBucketsHistogram(2)),
			prompb.FromFloatHistogram(8, tsdbutil.GenerateTestCustomBucketsFloatHistogram(2)))},
		"stale histogram":  {withHistogram(prompb.FromIntHistogram(7, &histogram.Histogram{Sum: stale}), prompb.FromFloatHistogram(8, &histogram.FloatHistogram{Sum: stale}))},
		"empty histogram":  {withHistogram(prompb.Histogram{})},
		"broken histogram": {withHistogram(broken)},
		"too fine":         {withHistogram(tooFine)},
		"exemplars":        {withExemplars},
		"bad series with a histogram": {func() prompb.TimeSeries {
			ts := series("a=b", sample(1, 1))
			ts.Histograms = []prompb.Histogram{prompb.FromIntHistogram(7, tsdbutil.GenerateTestHistogram(2))}
			return ts
		}()},
	}
}

// TestSameAsPrometheus: Prometheus's handler and ours answer a body with the same
// status and forward the same samples.
func TestSameAsPrometheus(t *testing.T) {
	compare := func(name, message string, body []byte) {
		t.Run(name+" "+message, func(t *testing.T) {
			sink := flowtest.NewSink("sink")
			r := start(t, noLabelLimits, sink.Receiver())
			store := &appended{}
			h := remote.NewWriteHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), store,
				remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType}, false, false, false)
			theirs := httptest.NewRecorder()
			h.ServeHTTP(theirs, r.request(message, body))
			ours := r.post(message, body)
			if ours.status != theirs.Code {
				t.Errorf("got %d %s, Prometheus answers %d %s", ours.status, ours.body, theirs.Code, theirs.Body)
			}
			for _, kind := range []string{"Samples", "Histograms", "Exemplars"} {
				name := "X-Prometheus-Remote-Write-" + kind + "-Written"
				if got, want := ours.header.Get(name), theirs.Header().Get(name); got != want {
					t.Errorf("%s is %q, Prometheus says %q", name, got, want)
				}
			}
			slices.Sort(store.committed)
			if diff := gocmp.Diff(store.committed, rows(sink.Batches())); diff != "" {
				t.Errorf("rows (-prometheus +weir):\n%s", diff)
			}
		})
	}
	for name, ts := range corpus() {
		compare(name, v1, body(t, ts...))
		compare(name, v2, v2Body(t, nil, ts...))
	}
	plain := corpus()["plain"]
	edits := map[string]func(*writev2.Request){
		"odd refs":       func(r *writev2.Request) { r.Timeseries[0].LabelsRefs = r.Timeseries[0].LabelsRefs[:3] },
		"ref too large":  func(r *writev2.Request) { r.Timeseries[0].LabelsRefs[1] = 1000 },
		"ref at the end": func(r *writev2.Request) { r.Timeseries[0].LabelsRefs[1] = uint32(len(r.Symbols)) },
		"help too large": func(r *writev2.Request) { r.Timeseries[0].Metadata.HelpRef = 1000 },
		"unit too large": func(r *writev2.Request) { r.Timeseries[0].Metadata.UnitRef = 1 << 31 },
		"no symbols":     func(r *writev2.Request) { r.Symbols = nil },
		"no sample":      func(r *writev2.Request) { r.Timeseries[0].Samples = nil },
		"unknown type":   func(r *writev2.Request) { r.Timeseries[0].Metadata.Type = 99 },
		"exemplar ref": func(r *writev2.Request) {
			r.Timeseries[0].Exemplars = []writev2.Exemplar{{LabelsRefs: []uint32{1, 1000}}}
		},
		"odd exemplar refs": func(r *writev2.Request) { r.Timeseries[0].Exemplars = []writev2.Exemplar{{LabelsRefs: []uint32{1}}} },
	}
	for name, edit := range edits {
		compare(name, v2, v2Body(t, edit, plain...))
	}
	// Invalid messages.
	good := body(t, plain...)
	for i := range good {
		if i%7 == 0 {
			compare(fmt.Sprintf("cut at %d", i), v1, good[:i])
		}
	}
	compare("1.0 as 2.0", v2, good)
	compare("2.0 as 1.0", v1, v2Body(t, nil, plain...))
	compare("garbage", v1, []byte("garbage"))
	compare("group", v1, append([]byte{0x13, 0x08, 0x01, 0x14}, good...))
	compare("empty label value field", v1, []byte{0x0a, 0x00})
}

// TestBetterThanPrometheus: in Prometheus, one invalid histogram rejects a whole
// 1.0 request, and an exemplar without a sample causes a 400 for a 2.0 request.
func TestBetterThanPrometheus(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	bad := corpus()["broken histogram"][0]
	good := series("__name__=good", sample(1, 1))
	a := r.want(400, body(t, good, bad))
	if got := rows(sink.Batches()); len(got) != 1 || !strings.Contains(got[0], "good") {
		t.Errorf("got %q, want the good series", got)
	}
	if !strings.Contains(a.body, `h{a="b"}`) {
		t.Errorf("got %q, want the series to be named", a.body)
	}
	if got := r.Stats.Dropped()["invalid_histogram_spans"]; got != 1 {
		t.Errorf("%d counted as invalid_histogram_spans, want 1", got)
	}
}
