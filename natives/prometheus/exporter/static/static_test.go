package static_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/exporter/internal/exporter"
	"github.com/weir-run/weir/natives/prometheus/exporter/static"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func build(t *testing.T, text string) (*componenttest.Node, http.Handler) {
	t.Helper()
	n := componenttest.New(t, "prometheus.exporter.static.s")
	n.Services["http"] = service.HTTPData{MemoryAddress: "weir.memory:80"}
	c := n.Build(t, static.Registration(), &static.Arguments{Text: static.Text(text)})
	return n, c.(component.HTTPHandler).Handler()
}

// scrape returns the samples that Prometheus reads from h.
func scrape(t *testing.T, h http.Handler, accept string) (samples []string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d: %s", w.Code, w.Body)
	}
	p, err := textparse.New(w.Body.Bytes(), w.Header().Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := p.Next()
		if err != nil {
			break
		}
		if e == textparse.EntrySeries {
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			samples = append(samples, fmt.Sprint(ls.String(), " ", v))
		}
	}
	return samples
}

func TestStatic(t *testing.T) {
	n, h := build(t, `# HELP build_info What runs.
# TYPE build_info gauge
build_info{version="1.2"} 1
requests_total 7
# TYPE lat histogram
lat_bucket{le="1"} 2
lat_bucket{le="+Inf"} 3
lat_sum 4
lat_count 3
`)
	want := []string{`{__name__="build_info", version="1.2"} 1`, `{__name__="lat_bucket", le="1.0"} 2`, `{__name__="lat_bucket", le="+Inf"} 3`,
		`{__name__="lat_sum"} 4`, `{__name__="lat_count"} 3`, `{__name__="requests_total"} 7`}
	if diff := cmp.Diff(want, scrape(t, h, string(expfmt.NewFormat(expfmt.TypeTextPlain)))); diff != "" {
		t.Errorf("as text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, scrape(t, h, string(expfmt.NewFormat(expfmt.TypeOpenMetrics)))); diff != "" {
		t.Errorf("as OpenMetrics (-want +got):\n%s", diff)
	}

	target := n.Exports().(exporter.Exports).Targets[0]
	got := []string{target["__address__"], target["__metrics_path__"], target["job"]}
	if diff := cmp.Diff([]string{"weir.memory:80", "/api/v0/component/prometheus.exporter.static.s/metrics", "integrations/static"}, got); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
}

func TestEmpty(t *testing.T) {
	_, h := build(t, "")
	if got := scrape(t, h, ""); len(got) != 0 {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestMistakes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c, ds := config.Parse(map[string]string{"c.alloy": "prometheus.exporter.static \"s\" {\n\ttext = `" + text + "`\n}\n"})
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		var lines []string
		for _, d := range c.Blocks[0].Decode(c.NewScope("v0.0.0"), static.Registration().NewArgs()) {
			lines = append(lines, d.Error())
		}
		if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f("a 1\n", "")
	f("a 1\nb{x=\"1\" 2\n", "c.alloy:2:9: text: cannot read line 2 of the metrics: unexpected end of label value \"1\"\n   | b{x=\"1\" 2")
	f("a 1", "c.alloy:2:9: text: cannot read line 1 of the metrics: unexpected end of input stream; the last line must end too\n   | a 1")
	f("a one\n", "c.alloy:2:9: text: cannot read line 1 of the metrics: expected float as value, got \"one\"\n   | a one")
}
