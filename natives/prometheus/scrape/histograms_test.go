package scrape

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// delimited returns families in protobuf format.
func delimited(t testing.TB, families ...*dto.MetricFamily) answer {
	t.Helper()
	var body []byte
	for _, f := range families {
		data, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		body = append(binary.AppendUvarint(body, uint64(len(data))), data...)
	}
	return answer{contentType: protoType, body: string(body)}
}

// withHistogram returns a body with a histogram h between two other metrics.
func withHistogram(t testing.TB, h *dto.Histogram) answer {
	t.Helper()
	gauge := func(name string) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: new(1.0)}}}}
	}
	return delimited(t, gauge("before"),
		&dto.MetricFamily{Name: new("h"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: h}}}, gauge("later"))
}

func spans(offsetsAndLengths ...int) (out []*dto.BucketSpan) {
	for i := 0; i < len(offsetsAndLengths); i += 2 {
		out = append(out, &dto.BucketSpan{Offset: new(int32(offsetsAndLengths[i])), Length: new(uint32(offsetsAndLengths[i+1]))})
	}
	return out
}

// integer is a valid integer histogram: 2 observations of zero, 1 negative, and
// 1, 2, 1 and 3 positive.
func integer(edit func(h *dto.Histogram)) *dto.Histogram {
	h := &dto.Histogram{
		SampleCount: new(uint64(10)), SampleSum: new(12.5), Schema: new(int32(3)), ZeroThreshold: new(0.001), ZeroCount: new(uint64(2)),
		NegativeSpan: spans(1, 1), NegativeDelta: []int64{1},
		PositiveSpan: spans(-2, 2, 3, 2), PositiveDelta: []int64{1, 1, -1, 2},
	}
	edit(h)
	return h
}

// float is integer with float counts.
func float(edit func(h *dto.Histogram)) *dto.Histogram {
	h := &dto.Histogram{
		SampleCountFloat: new(10.0), SampleSum: new(12.5), Schema: new(int32(3)), ZeroThreshold: new(0.001), ZeroCountFloat: new(2.0),
		NegativeSpan: spans(1, 1), NegativeCount: []float64{1},
		PositiveSpan: spans(-2, 2, 3, 2), PositiveCount: []float64{1, 2, 1, 3},
	}
	edit(h)
	return h
}

// histogramCase is a native histogram and the reason why weir drops it, or "".
type histogramCase struct {
	args   string
	h      *dto.Histogram
	reason string
}

func histogramCases() map[string]histogramCase {
	const factor, limit = "native_histogram_min_bucket_factor = 1.3", "native_histogram_bucket_limit = 3"
	type H = *dto.Histogram
	cases := map[string]histogramCase{}
	add := func(name, args, reason string, edit func(h H)) {
		cases[name+", integer"] = histogramCase{args, integer(edit), reason}
		cases[name+", float"] = histogramCase{args, float(edit), reason}
	}
	add("valid", "", "", func(H) {})
	for _, schema := range []int32{-4, 8} {
		add(fmt.Sprintf("schema %d", schema), "", "", func(h H) { h.Schema = new(schema) })
	}
	for _, schema := range []int32{-5, -9, -10, 9, 20, 52, 53, 127, -52, -54, math.MinInt32, math.MaxInt32} {
		add(fmt.Sprintf("schema %d", schema), "", valid.HistogramSchema, func(h H) { h.Schema = new(schema) })
	}
	add("custom buckets with an offset before them", "", valid.HistogramSpans, func(h H) { h.Schema = new(int32(-53)) })
	add("custom buckets without bounds", "", valid.HistogramBounds, func(h H) { h.Schema, h.PositiveSpan = new(int32(-53)), spans(0, 4) })
	add("custom buckets with a zero bucket", "", valid.HistogramBounds, func(h H) {
		h.Schema, h.PositiveSpan, h.PositiveDelta, h.PositiveCount = new(int32(-53)), spans(0, 1), []int64{1}, []float64{1}
	})
	add("schema 8 with a factor", factor, "", func(h H) { h.Schema = new(int32(8)) })
	add("schema 9 with a factor", factor, "", func(h H) { h.Schema = new(int32(9)) })
	add("schema 52 with a factor", factor, "", func(h H) { h.Schema = new(int32(52)) })
	add("schema 53 with a factor", factor, valid.HistogramSchema, func(h H) { h.Schema = new(int32(53)) })
	add("schema -9 with a factor", factor, valid.HistogramSchema, func(h H) { h.Schema = new(int32(-9)) })
	add("bad spans with a factor", factor, valid.HistogramSpans, func(h H) { h.Schema, h.PositiveSpan = new(int32(8)), spans(0, 9) })
	add("negative offset with a factor", factor, valid.HistogramSpans, func(h H) { h.Schema, h.PositiveSpan = new(int32(8)), spans(0, 2, -1, 2) })
	add("bucket limit", limit, "", func(h H) {})
	add("bad spans with a bucket limit", limit, valid.HistogramSpans, func(h H) { h.PositiveSpan = spans(0, 9) })
	add("negative offset with a bucket limit", limit, valid.HistogramSpans, func(h H) { h.PositiveSpan = spans(0, 2, -1, 2) })
	add("spans without buckets", "", valid.HistogramSpans, func(h H) { h.PositiveDelta, h.PositiveCount = nil, nil })
	add("spans for more buckets", "", valid.HistogramSpans, func(h H) { h.PositiveSpan = spans(0, 5) })
	add("spans for fewer buckets", "", valid.HistogramSpans, func(h H) { h.PositiveSpan = spans(0, 3) })
	add("buckets without spans", "", valid.HistogramSpans, func(h H) { h.PositiveSpan = nil })
	add("negative side: spans without buckets", "", valid.HistogramSpans, func(h H) { h.NegativeDelta, h.NegativeCount = nil, nil })
	add("negative side: buckets without spans", "", valid.HistogramSpans, func(h H) { h.NegativeSpan = nil })
	add("negative offset of a later span", "", valid.HistogramSpans, func(h H) { h.PositiveSpan = spans(0, 2, -1, 2) })
	add("sum is NaN", "", "", func(h H) { h.SampleSum = new(math.NaN()) })
	add("sum is infinite", "", "", func(h H) { h.SampleSum = new(math.Inf(1)) })

	// Prometheus does not compare the count of all observations of a float
	// histogram with the buckets either.
	onlyInteger := func(name, reason string, edit func(h H)) { cases[name] = histogramCase{"", integer(edit), reason} }
	onlyFloat := func(name, reason string, edit func(h H)) { cases[name] = histogramCase{"", float(edit), reason} }
	onlyInteger("count too small", valid.HistogramCounts, func(h H) { h.SampleCount = new(uint64(9)) })
	onlyInteger("count too large", valid.HistogramCounts, func(h H) { h.SampleCount = new(uint64(11)) })
	onlyInteger("count too large, sum is NaN", "", func(h H) { h.SampleCount, h.SampleSum = new(uint64(11)), new(math.NaN()) })
	onlyInteger("count too small, sum is NaN", valid.HistogramCounts, func(h H) { h.SampleCount, h.SampleSum = new(uint64(9)), new(math.NaN()) })
	onlyInteger("negative bucket", valid.HistogramCounts, func(h H) { h.PositiveDelta = []int64{1, -2, 1, 2} })
	onlyInteger("negative bucket on the negative side", valid.HistogramCounts, func(h H) { h.NegativeDelta = []int64{-1} })
	onlyInteger("no observations", "", func(h H) { *h = dto.Histogram{Schema: new(int32(0)), ZeroThreshold: new(0.1)} })
	onlyFloat("float count too small", "", func(h H) { h.SampleCountFloat = new(1.0) })
	onlyFloat("float count is NaN", valid.HistogramSpans, func(h H) { h.SampleCountFloat, h.PositiveSpan = new(math.NaN()), spans(0, 9) })
	onlyFloat("float zero count is negative", valid.HistogramCounts, func(h H) { h.ZeroCountFloat = new(-1.0) })
	onlyFloat("float bucket is negative", valid.HistogramCounts, func(h H) { h.PositiveCount[1] = -2 })
	onlyFloat("float bucket is NaN", "", func(h H) { h.PositiveCount[1] = math.NaN() })
	onlyFloat("float bucket is infinite", "", func(h H) { h.PositiveCount[1] = math.Inf(1) })
	return cases
}

// inTSDB lets Prometheus scrape a body into a real TSDB. It returns the stored
// histogram h, or "", and the exemplars of its series.
func inTSDB(t *testing.T, args string, answers ...answer) (h string, exemplars []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(answers)
		defer func() {
			w.server.Close()
			synctest.Wait()
		}()
		o := tsdb.DefaultOptions()
		o.EnableExemplarStorage, o.MaxExemplars = true, 10_000
		db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		manage(t, w, decode(t, args), len(answers), db)
		q, err := db.Querier(math.MinInt64, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		set := q.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "h"))
		for set.Next() {
			for it := set.At().Iterator(nil); ; {
				switch typ := it.Next(); typ {
				case chunkenc.ValHistogram:
					if _, is := it.AtHistogram(nil); !math.IsNaN(is.Sum) || is.Count > 0 {
						h = fmt.Sprintf("%d %s", is.Schema, is)
					}
					continue
				case chunkenc.ValFloatHistogram:
					if _, is := it.AtFloatHistogram(nil); !math.IsNaN(is.Sum) || is.Count > 0 {
						h = fmt.Sprintf("%d %s", is.Schema, is)
					}
					continue
				case chunkenc.ValFloat:
					continue
				}
				break
			}
		}
		eq, err := db.ExemplarQuerier(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found, err := eq.Select(math.MinInt64, math.MaxInt64, []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			for _, e := range f.Exemplars {
				exemplars = append(exemplars, fmt.Sprintf("%s %s %v", f.SeriesLabels, e.Labels, e.Value))
			}
		}
	})
	return h, exemplars
}

// viaWeir lets weir scrape the answers. It returns the samples, and the component
// with its counters.
func viaWeir(t *testing.T, args string, answers ...answer) (scrapes [][]sample, comp *Component) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(answers)
		defer func() {
			w.server.Close()
			synctest.Wait()
		}()
		c, a := new(collector), decode(t, args)
		var stop func()
		comp, stop = runWeir(t, w, a, c)
		time.Sleep(time.Duration(len(answers)+1) * a.ScrapeInterval)
		stop()
		scrapes = c.scrapes[:len(answers)]
	})
	return scrapes, comp
}

// TestInvalidHistograms compares with Prometheus and a real TSDB which native
// histograms weir accepts, and in what resolution. Prometheus fails the whole
// scrape because of an invalid histogram; weir drops only that histogram.
func TestInvalidHistograms(t *testing.T) {
	cases := histogramCases()
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			body, args := withHistogram(t, c.h), "scrape_native_histograms = true\n"+c.args
			want, _ := inTSDB(t, args, body)
			scrapes, comp := viaWeir(t, args, body)
			got, rest := "", []string{}
			for _, s := range scrapes[0] {
				switch name, _, _ := strings.Cut(strings.TrimPrefix(s.Series, `{__name__="`), `"`); name {
				case "h":
					got = s.Histogram
				case "before", "later", "up":
					rest = append(rest, name+" "+strings.Fields(s.V)[0])
				}
			}
			if got != want {
				t.Errorf("weir made %q of it, Prometheus %q", got, want)
			}
			if accepted := want != ""; accepted != (c.reason == "") {
				t.Errorf("Prometheus made %q of it, want the reason to be %q", want, c.reason)
			}
			if d := cmp.Diff([]string{"before 1", "later 1", "up 1"}, rest); d != "" {
				t.Errorf("the other samples (-want +got)\n%s", d)
			}
			counts := map[string]uint64{}
			if c.reason != "" {
				counts[c.reason] = 1
			}
			if d := cmp.Diff(counts, comp.opts.Stats.Dropped()); d != "" {
				t.Errorf("dropped (-want +got)\n%s", d)
			}
			for reason, arg := range map[string]string{reducedByFactor: "min_bucket_factor", reducedByLimit: "bucket_limit"} {
				reduced := strings.Contains(c.args, arg) && c.reason == ""
				if got := testutil.ToFloat64(comp.metrics.reduced.WithLabelValues(reason)) > 0; got != reduced {
					t.Errorf("counted as reduced because of %s: %v, want %v", reason, got, reduced)
				}
			}
		})
	}
}

// TestHistogramsComeAndGo compares all samples of series whose histograms are
// only sometimes valid, apart from the scrapes that Prometheus fails.
func TestHistogramsComeAndGo(t *testing.T) {
	good, bad := withHistogram(t, integer(func(*dto.Histogram) {})), withHistogram(t, integer(func(h *dto.Histogram) { h.SampleCount = new(uint64(1)) }))
	fgood, fbad := withHistogram(t, float(func(*dto.Histogram) {})), withHistogram(t, float(func(h *dto.Histogram) { h.ZeroCountFloat = new(-1.0) }))
	const native = "scrape_native_histograms = true\n"
	compare(t, native, good, bad, bad, good, fgood, fbad, bad, text("a 1\n"), bad, fgood, text("a 1\n"))
	compare(t, native+"sample_limit = 3", bad, good, fbad, fgood)
	compare(t, native+"sample_limit = 2", bad, good, fbad, fgood)
	compare(t, native+"start_timestamp_zero_ingestion = true", withHistogram(t, integer(func(h *dto.Histogram) {
		h.CreatedTimestamp = timestamppb.New(timestamppb.Now().AsTime())
		h.SampleCount = new(uint64(1))
	})), good)
}

// TestMismatchAmongOthers: textparse stops at a native histogram whose spans do
// not match its buckets. weir still scrapes the samples before and after it.
func TestMismatchAmongOthers(t *testing.T) {
	bad := func(h *dto.Histogram) {
		h.PositiveSpan = spans(0, 9)
		h.Bucket = []*dto.Bucket{{CumulativeCount: new(uint64(3)), UpperBound: new(1.0)}}
	}
	metric := func(i string, h *dto.Histogram) *dto.Metric {
		return &dto.Metric{Label: []*dto.LabelPair{{Name: new("i"), Value: new(i)}}, Histogram: h}
	}
	family := func(name string, ms ...*dto.Metric) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Type: dto.MetricType_HISTOGRAM.Enum(), Metric: ms}
	}
	none := func(*dto.Histogram) {}
	body := delimited(t,
		family("first", metric("1", integer(bad)), metric("2", float(none)), metric("3", float(bad))),
		family("second", metric("4", integer(none)), metric("5", integer(bad)), metric("6", integer(none))))
	series := func(args string) (names []string) {
		scrapes, comp := viaWeir(t, "scrape_native_histograms = true\n"+args, body)
		for _, s := range scrapes[0] {
			if strings.Contains(s.Series, ` i="`) {
				names = append(names, s.Series[11:strings.IndexByte(s.Series, ',')]+s.Series[strings.Index(s.Series, ` i="`)+3:][:3])
			}
		}
		if d := cmp.Diff(map[string]uint64{valid.HistogramSpans: 3}, comp.opts.Stats.Dropped()); d != "" {
			t.Errorf("dropped (-want +got)\n%s", d)
		}
		slices.Sort(names)
		return names
	}
	if d := cmp.Diff([]string{`first""2"`, `second""4"`, `second""6"`}, series("")); d != "" {
		t.Errorf("series (-want +got)\n%s", d)
	}
	// Count, sum and two buckets of the invalid histograms stay.
	if got := series("scrape_classic_histograms = true"); len(got) != 3+3*4 {
		t.Errorf("series with classic histograms: %q", got)
	}
}

// FuzzHistogram compares which native histograms weir and Prometheus accept.
func FuzzHistogram(f *testing.F) {
	for _, c := range histogramCases() {
		data, err := proto.Marshal(c.h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, c.args != "")
	}
	f.Fuzz(func(t *testing.T, data []byte, limits bool) {
		h := new(dto.Histogram)
		if proto.Unmarshal(data, h) != nil {
			t.Skip("no histogram")
		}
		if len(h.Bucket) > 0 || len(h.Exemplars) > 0 {
			t.Skip("not about classic buckets and exemplars")
		}
		compareHistogram(t, h, limits)
	})
}

// TestRandomHistograms compares histograms from which FuzzHistogram can start.
func TestRandomHistograms(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 5))
	cases := histogramCases()
	names := slices.Sorted(maps.Keys(cases))
	accepted := 0
	for range 400 {
		h := proto.CloneOf(cases[names[r.IntN(len(names))]].h)
		for range r.IntN(3) {
			switch r.IntN(8) {
			case 0:
				h.Schema = new(int32(r.IntN(20) - 8))
			case 1:
				h.PositiveDelta = append(h.PositiveDelta, int64(r.IntN(5)-2))
			case 2:
				h.PositiveSpan = append(h.PositiveSpan, spans(r.IntN(5)-1, r.IntN(4))...)
			case 3:
				h.PositiveCount = append(h.PositiveCount, float64(r.IntN(5)-1))
			case 4:
				h.SampleCount = new(uint64(r.IntN(20)))
			case 5:
				h.ZeroCount, h.ZeroCountFloat = new(uint64(r.IntN(4))), new(float64(r.IntN(4)-1))
			case 6:
				h.NegativeSpan, h.NegativeDelta, h.NegativeCount = nil, nil, nil
			case 7:
				h.SampleSum = new(math.NaN())
			}
		}
		if compareHistogram(t, h, r.IntN(2) == 0) {
			accepted++
		}
		if t.Failed() {
			t.Fatalf("with %v", h)
		}
	}
	if accepted < 40 || accepted > 360 {
		t.Errorf("%d of 400 were accepted", accepted)
	}
}

// compareHistogram lets Prometheus and weir scrape a histogram and compares the
// results. It reports whether it was accepted.
func compareHistogram(t *testing.T, h *dto.Histogram, limits bool) (accepted bool) {
	t.Helper()
	args := "scrape_native_histograms = true\n"
	if limits {
		args += "native_histogram_min_bucket_factor = 1.3\nnative_histogram_bucket_limit = 3"
	}
	body := withHistogram(t, h)
	if err := newIntake(newTestSettings(t, args), newCache(), 0).body(append([]byte(body.body), 0)[:len(body.body)], protoType); err != nil && strings.Contains(err.Error(), "panicked") {
		t.Skip("textparse panics") // would end the test in Prometheus
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld([]answer{body})
		defer func() {
			w.server.Close()
			synctest.Wait()
		}()
		of := func(scrapes [][]sample) (h string, up bool) {
			for _, s := range scrapes[0] {
				if strings.HasPrefix(s.Series, `{__name__="h"`) {
					h = s.Histogram
				}
				up = up || strings.HasPrefix(s.Series, `{__name__="up"`) && s.V[0] == '1'
			}
			return h, up
		}
		want, theirs := of(byManager(t, w, decode(t, args), 1))
		got, ours := of(byWeir(t, w, decode(t, args), 1))
		// If a reduction fails, Prometheus fails the scrape.
		if got != want || theirs && !ours {
			t.Errorf("weir made %q of it (up %v), Prometheus %q (up %v)", got, ours, want, theirs)
		}
		accepted = want != ""
	})
	return accepted
}
