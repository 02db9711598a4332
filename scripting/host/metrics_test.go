package host_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// gathered are the names of the metrics, with the number of their series.
func gathered(t *testing.T, m *host.Metrics) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(undescribed{m})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		if name, ok := strings.CutPrefix(f.GetName(), "weir_script_custom_"); ok && name != "series" {
			value := ""
			if c := f.Metric[0].Counter; c != nil {
				value = fmt.Sprintf("=%g", c.GetValue())
			}
			out = append(out, fmt.Sprintf("%s:%d%s", name, len(f.Metric), value))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// undescribed hides Describe: the registry then takes all that comes.
type undescribed struct{ *host.Metrics }

// Describe describes nothing.
func (undescribed) Describe(chan<- *prometheus.Desc) {}

// TestMetricsDeclaredTwice holds that a metric has one type and one set of labels, and
// that the first use decides its help.
func TestMetricsDeclaredTwice(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{})
	get := func(kind, name string, args ...scripting.Value) (scripting.Value, error) {
		t.Helper()
		return s.do(t, "metrics."+kind, append([]scripting.Value{name}, args...)...)
	}
	add := func(x scripting.Value, err error, n float64) {
		t.Helper()
		if err == nil {
			_, err = method(t, x, "add", n)
		}
		if err != nil {
			t.Error(err)
		}
	}
	x, err := get("counter", "hits", table("path", "/a"), "Hits.")
	add(x, err, 2)
	y, err := get("counter", "hits", table("path", "/a"), "Another help.")
	add(y, err, 3)
	z, err := get("counter", "hits_total", table("path", "/b"))
	add(z, err, 1) // the same metric
	if got, want := gathered(t, s.metrics), "hits_total:2=5 refused_total:1=0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// hits is a name of its own: that of the counter ends in _total.
	if _, err := get("gauge", "hits"); err != nil {
		t.Error(err)
	}
	_, err = get("gauge", "hits_total")
	fails(t, "another type", err, "cannot call gauge: argument name is already used by a counter")
	_, err = get("histogram", "hits")
	fails(t, "another type", err, "cannot call histogram: argument name is already used by a gauge")
	_, err = get("counter", "hits", table("path", "/a", "code", int64(200)))
	fails(t, "more labels", err, "cannot call counter: argument labels must be the labels of the first use: [path], not [code path]")
	_, err = get("counter", "hits")
	fails(t, "no labels", err, "argument labels must be the labels of the first use: [path], not []")
}

// TestMetricsRefused checks names of metrics and labels, and numbers, that are refused.
func TestMetricsRefused(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{})
	f := func(name string, labels *scripting.Map, want string) {
		t.Helper()
		_, err := s.do(t, "metrics.gauge", name, labels)
		fails(t, name, err, want)
	}
	long := strings.Repeat("x", 101)
	for _, name := range []string{"", "Upper", "9lives", "_x", "a-b", "a b", "ä", long} {
		f(name, table(), "argument name must consist of lower-case letters, digits and underscores")
	}
	for _, label := range []string{"", "a-b", "9", "__name__", "component_id", "le", long} {
		f("ok", table(label, "x"), "argument labels cannot have the label")
	}
	if got := gathered(t, s.metrics); got != "" {
		t.Errorf("got %s", got)
	}

	x, err := s.do(t, "metrics.counter", "n")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := method(t, x, "add", n)
		fails(t, "add", err, "must not be negative: a counter only goes up")
	}
	if h, err := s.do(t, "metrics.histogram", "h"); err != nil {
		t.Error(err)
	} else if _, err := method(t, h, "observe", math.NaN()); err != nil {
		t.Error(err)
	}
	if got, want := gathered(t, s.metrics), "h:1 n_total:1=0 refused_total:1=0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestMetricsOfOldVersions holds that a series that no version since a reload has used
// is forgotten after 15 sweeps, and that others stay.
func TestMetricsOfOldVersions(t *testing.T) {
	m := host.NewMetrics()
	for _, name := range []string{"gone", "used", "kept"} {
		m.Series(1, 0, name, nil, "")
	}
	kept, _, _ := m.Series(2, 0, "kept", nil, "") // the new version asks for it
	used, _, _ := m.Series(1, 0, "used", nil, "")
	add, _ := host.Context().Tables[1].Types[0].Method("add")
	count := func(s *host.Series) {
		if _, err := add.Call(&scripting.Object{Data: s}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 15 {
		m.RemoveOutdated(2)
		count(used) // by a call that still runs
	}
	if got, want := gathered(t, m), "gone_total:1=0 kept_total:1=0 refused_total:1=0 used_total:1=15"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.RemoveOutdated(2)
	if got, want := gathered(t, m), "kept_total:1=0 refused_total:1=0 used_total:1=15"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	count(kept)
	for range 16 {
		m.RemoveOutdated(2)
	}
	if got, want := gathered(t, m), "kept_total:1=1 refused_total:1=0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.RemoveOutdated(3)
	if got := gathered(t, m); got != "" {
		t.Errorf("got %s", got)
	}
}
