package echo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/prometheus/echo"
)

type consumer interface {
	component.Updater
	flow.MetricsConsumer
}

func build(t *testing.T, w io.Writer, f echo.Format) consumer {
	t.Helper()
	r := echo.RegistrationTo(w)
	a := r.NewArgs().(*echo.Arguments)
	if a.Format != echo.Text {
		t.Errorf("got default format %q, want text", a.Format)
	}
	a.Format = f
	n := componenttest.New(t, "prometheus.echo.default")
	c := n.Build(t, r, a)
	n.Run(t, c)
	return c.(consumer)
}

func series(meta *batch.Metadata, pairs ...string) *batch.Series {
	s := batch.FromLabels(labels.FromStrings(pairs...))
	if meta != nil {
		s.SetMeta(meta)
	}
	return s
}

// sample returns a batch with one row of each kind. The rows of its families are
// interleaved.
func sample() *batch.Metrics {
	counter := &batch.Metadata{Type: "counter", Help: "Requests \"seen\",\nall \\ told.", Unit: ""}
	seconds := &batch.Metadata{Type: "histogram", Help: "Time.", Unit: "seconds"}
	return &batch.Metrics{
		Series: []*batch.Series{
			series(counter, "__name__", "http_requests_total", "path", "a\\b\n\"c\""),
			series(seconds, "__name__", "took_seconds_bucket", "le", "0.5"),
			series(counter, "__name__", "http_requests_total", "path", "/b"),
			series(seconds, "__name__", "took_seconds_bucket", "le", "+Inf"),
			series(seconds, "__name__", "took_seconds_sum"),
			series(seconds, "__name__", "took_seconds_count"),
			series(&batch.Metadata{Type: "gauge"}, "__name__", "temperature"),
			series(&batch.Metadata{Type: "counter"}, "__name__", "odd_counter"),
			series(nil, "__name__", "unknown_thing", "a", ""),
			series(nil, "__name__", "dotted.näme", "label.näme", "x"),
			series(nil, "__name__", "native", "job", "j"),
		},
		T: []int64{1735689600123, 1735689600123, 1735689600123, 1735689600123, 1735689600123, 1735689600123, 1735689600000, 5, 6, 7, 8000},
		V: []float64{1, 2, 3, 4, 5.5, 4, math.Inf(-1), 9, batch.Stale(), 1e300, 21},
		Histograms: []batch.Histogram{{Row: 10, Int: &histogram.Histogram{
			Schema: 0, Count: 6, Sum: 21, ZeroThreshold: 0.001, ZeroCount: 1,
			PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []int64{2, 1},
		}}},
		Exemplars: []batch.Exemplar{
			{Row: 0, Value: 0.1}, // older
			{Row: 0, Labels: []batch.Label{{Name: "trace_id", Value: "abc"}}, Value: 0.2, T: 1735689599500, HasT: true},
			{Row: 3, Labels: []batch.Label{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}, Value: 4},
		},
		Starts: []batch.Start{{Row: 0, T: 1735689000000}, {Row: 5, T: 1735689000001}},
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	c := build(t, &out, echo.Text)
	if err := c.ConsumeMetrics(t.Context(), sample()); err != nil {
		t.Fatal(err)
	}
	want := `# HELP http_requests_total Requests "seen",\nall \\ told.
# TYPE http_requests_total counter
http_requests_total{path="a\\b\n\"c\""} 1 1735689600123
http_requests_total{path="/b"} 3 1735689600123
# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{le="0.5"} 2 1735689600123
took_seconds_bucket{le="+Inf"} 4 1735689600123
took_seconds_sum 5.5 1735689600123
took_seconds_count 4 1735689600123
# TYPE temperature gauge
temperature -Inf 1735689600000
# TYPE odd_counter counter
odd_counter 9 5
# stale:
unknown_thing NaN 6
{"dotted.näme","label.näme"="x"} 1e+300 7
# TYPE native histogram
native_bucket{job="j",le="0.001"} 1 8000
native_bucket{job="j",le="1"} 3 8000
native_bucket{job="j",le="2"} 6 8000
native_bucket{job="j",le="+Inf"} 6 8000
native_sum{job="j"} 21 8000
native_count{job="j"} 6 8000
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parse(t, textparse.NewPromParser(out.Bytes(), labels.NewSymbolTable(), false))
}

func TestOpenMetrics(t *testing.T) {
	var out bytes.Buffer
	c := build(t, &out, echo.OpenMetrics)
	if err := c.ConsumeMetrics(t.Context(), sample()); err != nil {
		t.Fatal(err)
	}
	want := `# HELP http_requests Requests \"seen\",\nall \\ told.
# TYPE http_requests counter
http_requests_total{path="a\\b\n\"c\""} 1 1735689600.123 # {trace_id="abc"} 0.2 1735689599.5
http_requests_created{path="a\\b\n\"c\""} 1735689000
http_requests_total{path="/b"} 3 1735689600.123
# HELP took_seconds Time.
# TYPE took_seconds histogram
# UNIT took_seconds seconds
took_seconds_bucket{le="0.5"} 2 1735689600.123
took_seconds_bucket{le="+Inf"} 4 1735689600.123 # {a="1",b="2"} 4
took_seconds_sum 5.5 1735689600.123
took_seconds_count 4 1735689600.123
took_seconds_created 1735689000.001
# TYPE temperature gauge
temperature -Inf 1735689600
# TYPE odd_counter unknown
odd_counter 9 0.005
unknown_thing NaN 0.006
{"dotted.näme","label.näme"="x"} 1e+300 0.007
# TYPE native histogram
native_bucket{job="j",le="0.001"} 1 8
native_bucket{job="j",le="1"} 3 8
native_bucket{job="j",le="2"} 6 8
native_bucket{job="j",le="+Inf"} 6 8
native_sum{job="j"} 21 8
native_count{job="j"} 6 8
# EOF
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parse(t, textparse.NewOpenMetricsParser(out.Bytes(), labels.NewSymbolTable()))
}

// parse checks that Prometheus reads the plain samples unchanged.
func parse(t *testing.T, p textparse.Parser) {
	t.Helper()
	b := sample()
	want := map[string]string{}
	for i, s := range b.Series[:10] {
		want[s.PromLabels().String()] = fmt.Sprint(b.T[i], b.V[i])
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("Prometheus cannot parse the output: %v", err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		_, ts, v := p.Series()
		var ex exemplar.Exemplar
		if p.Exemplar(&ex) && ex.Value != 0.2 && ex.Value != 4 {
			t.Errorf("got exemplar %v, want the latest", ex)
		}
		key := ls.String()
		if w, ok := want[key]; ok {
			if got := fmt.Sprint(*ts, v); got != w {
				t.Errorf("%s: got %s, want %s", key, got, w)
			}
			delete(want, key)
		} else if !strings.HasPrefix(ls.Get("__name__"), "native_") && !strings.HasSuffix(ls.Get("__name__"), "_created") {
			t.Errorf("unexpected series %s", key)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestUpdate(t *testing.T) {
	var out bytes.Buffer
	c := build(t, &out, echo.Text)
	if err := c.Update(&echo.Arguments{Format: echo.OpenMetrics}); err != nil {
		t.Fatal(err)
	}
	if err := c.ConsumeMetrics(t.Context(), &batch.Metrics{}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "# EOF\n" {
		t.Errorf("got %q, want an empty OpenMetrics exposition", got)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteError(t *testing.T) {
	c := build(t, fullDisk{}, echo.Text)
	err := c.ConsumeMetrics(context.Background(), sample())
	if !errors.Is(err, io.ErrShortWrite) || !strings.HasPrefix(err.Error(), "cannot print a batch: ") {
		t.Errorf("got %v, want the writer's error", err)
	}
}

func TestFormatText(t *testing.T) {
	var f echo.Format
	if err := f.UnmarshalText([]byte("json")); err == nil || !strings.Contains(err.Error(), `"openmetrics"`) {
		t.Errorf("got %v, want an error that names the formats", err)
	}
}
