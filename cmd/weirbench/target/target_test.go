package target_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/cmd/weirbench/target"
)

func options(change func(*target.Options)) target.Options {
	o := target.Defaults()
	if change != nil {
		change(&o)
	}
	return o
}

func newBody(t *testing.T, o target.Options) *target.Body {
	t.Helper()
	b, err := target.NewBody(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parsed is a body as parsed by Prometheus.
type parsed struct {
	order  []string
	values map[string]float64
	types  map[string]model.MetricType
	names  map[string]string // of series
}

func parse(t *testing.T, body []byte, contentType string) parsed {
	t.Helper()
	p, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := parsed{values: map[string]float64{}, types: map[string]model.MetricType{}, names: map[string]string{}}
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("Prometheus cannot parse the body: %v\n%.3000s", err, body)
		}
		switch e {
		case textparse.EntryType:
			name, typ := p.Type()
			if _, again := out.types[string(name)]; again {
				t.Fatalf("family %s comes twice", name)
			}
			out.types[string(name)] = typ
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			if _, again := out.values[ls.String()]; again {
				t.Fatalf("series %s comes twice", ls)
			}
			out.order = append(out.order, ls.String())
			out.values[ls.String()] = v
			out.names[ls.String()] = ls.Get("__name__")
		}
	}
}

const (
	text        = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

func TestBody(t *testing.T) {
	f := func(series int, format target.Format, contentType string) {
		t.Helper()
		b := newBody(t, options(func(o *target.Options) { o.Series, o.Format, o.Sequences = series, format, min(5, series) }))
		first := parse(t, b.Append(nil, 3, 1), contentType)
		if len(first.order) != series || b.Len() != series {
			t.Errorf("%d series in %s: %d were parsed, Len is %d", series, format, len(first.order), b.Len())
		}
		if n := b.Count(func(name string) bool { return strings.HasPrefix(name, target.SequencePrefix) }); n != min(5, series) {
			t.Errorf("%d series in %s have %d sequences", series, format, n)
		}
	}
	for _, series := range []int{1, 5, 6, 25, 26, 64, 65, 100, 999, 1000, 10_000} {
		f(series, target.Text, text)
		f(series, target.OpenMetrics, openMetrics)
	}
}

func TestBodyKinds(t *testing.T) {
	kinds := map[model.MetricType]int{}
	p := parse(t, newBody(t, options(nil)).Append(nil, 0, 1), text)
	for _, typ := range p.types {
		kinds[typ]++
	}
	want := map[model.MetricType]int{model.MetricTypeCounter: 12, model.MetricTypeGauge: 17, model.MetricTypeHistogram: 2, model.MetricTypeSummary: 1}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("families by type, -want +got:\n%s", d)
	}
	// Buckets are always cumulative.
	for _, n := range []int{1, 2, 50, 1000} {
		p := parse(t, newBody(t, options(nil)).Append(nil, 7, n), text)
		for i := 1; i < len(p.order); i++ {
			name := p.names[p.order[i]]
			if strings.HasSuffix(name, "_bucket") && p.names[p.order[i-1]] == name && !strings.Contains(p.order[i], `le="0.005"`) && !strings.Contains(p.order[i], `le="100.0"`) &&
				p.values[p.order[i]] < p.values[p.order[i-1]] {
				t.Errorf("scrape %d: bucket %s = %g is below the previous one, %g", n, p.order[i], p.values[p.order[i]], p.values[p.order[i-1]])
			}
		}
	}
}

func TestValuesChange(t *testing.T) {
	b := newBody(t, options(nil))
	for _, n := range []int{1, 2, 77, 5000} {
		before, after := parse(t, b.Append(nil, 3, n), text), parse(t, b.Append(nil, 3, n+1), text)
		if d := cmp.Diff(before.order, after.order); d != "" {
			t.Fatalf("scrape %d has other series:\n%s", n+1, d)
		}
		changed := 0
		for s, v := range before.values {
			if after.values[s] != v {
				changed++
			}
			if strings.HasPrefix(before.names[s], target.SequencePrefix) && (v != float64(target.SequenceBase+n) || after.values[s] != v+1) {
				t.Errorf("sequence %s is %g and then %g at scrape %d", s, v, after.values[s], n)
			}
		}
		if changed < 890 || changed > 910 {
			t.Errorf("from scrape %d to the next %d of 1000 values change, want 900", n, changed)
		}
	}
	if bytes.Equal(b.Append(nil, 1, 1), b.Append(nil, 2, 1)) {
		t.Error("two targets show the same")
	}
	if got, again := b.Append([]byte("x"), 1, 1), b.Append(nil, 1, 1); string(got) != "x"+string(again) {
		t.Error("a body depends on something else than target and scrape")
	}
}

func TestChurn(t *testing.T) {
	f := func(churn float64, want int) {
		t.Helper()
		b := newBody(t, options(func(o *target.Options) { o.Churn = churn }))
		for _, n := range []int{1, 19, 20, 300} {
			before, after := parse(t, b.Append(nil, 3, n), text), parse(t, b.Append(nil, 3, n+1), text)
			fresh := 0
			for s := range after.values {
				if _, known := before.values[s]; !known {
					fresh++
				}
			}
			if math.Abs(float64(fresh-want)) > 2 {
				t.Errorf("churn %g: scrape %d has %d new series, want %d", churn, n+1, fresh, want)
			}
		}
	}
	f(0, 0)
	f(0.05, 50)
	f(0.1, 100)
	f(1, 995) // all except the sequences
}

func TestOptions(t *testing.T) {
	f := func(want string, change func(*target.Options)) {
		t.Helper()
		err := options(change).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	f("0 targets", func(o *target.Options) { o.Targets = 0 })
	f("10001 targets", func(o *target.Options) { o.Targets = 10001 })
	f("0 series", func(o *target.Options) { o.Series, o.Sequences = 0, 0 })
	f("6 of 5 series", func(o *target.Options) { o.Series, o.Sequences = 5, 6 })
	f(`format "protobuf"`, func(o *target.Options) { o.Format = "protobuf" })
	f(`compress "yes"`, func(o *target.Options) { o.Gzip = "yes" })
	f("rename 5 of", func(o *target.Options) { o.Churn = 5 })
	f("rename NaN of", func(o *target.Options) { o.Churn = math.NaN() })
	if err := options(nil).Validate(); err != nil {
		t.Errorf("the defaults are wrong: %v", err)
	}
}

// serve runs targets for the duration of a test.
func serve(t *testing.T, o target.Options) *target.Server {
	t.Helper()
	s, err := target.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// request returns status, headers and the raw body.
func request(t *testing.T, method, url string, header ...string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity") // otherwise, the transport requests gzip itself
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

func TestServer(t *testing.T) {
	s := serve(t, options(func(o *target.Options) { o.Targets, o.Series = 2, 100 }))
	url := "http://" + s.Addresses()[1] + "/metrics"
	for n := 1; n <= 3; n++ {
		status, h, body := request(t, "GET", url)
		if want := s.Body().Append(nil, 1, n); status != 200 || !bytes.Equal(body, want) {
			t.Fatalf("scrape %d: status %d, -want +got:\n%s", n, status, cmp.Diff(string(want), string(body)))
		}
		if h.Get("Content-Type") != text || h.Get("Content-Encoding") != "" {
			t.Errorf("headers %v", h)
		}
	}
	if status, _, _ := request(t, "GET", "http://"+s.Addresses()[1]+"/other"); status != 404 {
		t.Errorf("another path answers %d", status)
	}
	request(t, "POST", "http://"+s.Control()+"/freeze")
	if status, _, _ := request(t, "GET", url); status != 503 {
		t.Errorf("a frozen target answers %d", status)
	}
	request(t, "POST", "http://"+s.Control()+"/thaw")
	if _, _, body := request(t, "GET", url); !bytes.Equal(body, s.Body().Append(nil, 1, 4)) {
		t.Error("after a thaw the scrape is not the fourth")
	}
	_, _, stats := request(t, "GET", "http://"+s.Control()+"/stats")
	want := fmt.Sprintf(`{"series":100,"scrapes":{%q:0,%q:4},"refused":{%q:1},"aborted":0,"late":0,"bytes":%d}`, s.Addresses()[0], s.Addresses()[1], s.Addresses()[1], 4*s.Body().Bytes())
	swapped := fmt.Sprintf(`{"series":100,"scrapes":{%q:4,%q:0},"refused":{%q:1},"aborted":0,"late":0,"bytes":%d}`, s.Addresses()[1], s.Addresses()[0], s.Addresses()[1], 4*s.Body().Bytes())
	if got := strings.TrimSpace(string(stats)); got != want && got != swapped {
		t.Errorf("got stats %s, want %s", got, want)
	}
}

func TestGzip(t *testing.T) {
	f := func(g target.Gzip, accept string, compressed bool) {
		t.Helper()
		s := serve(t, options(func(o *target.Options) { o.Targets, o.Series, o.Gzip = 1, 100, g }))
		_, h, body := request(t, "GET", "http://"+s.Addresses()[0]+"/metrics", "Accept-Encoding", accept)
		if got := h.Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("gzip=%s with Accept-Encoding %q: compressed is %t", g, accept, got)
		}
		if compressed {
			zr, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(zr); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, s.Body().Append(nil, 0, 1)) {
			t.Error("the body is another")
		}
	}
	f(target.GzipOff, "gzip", false)
	f(target.GzipAccept, "gzip", true)
	f(target.GzipAccept, "identity", false)
	f(target.GzipAlways, "identity", true)
}
