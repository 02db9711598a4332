package unix

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/node_exporter/collector"
)

// process contains the node_exporter flags that this process has set. It is a
// global variable because the flags are global.
var process struct {
	sync.Mutex
	flags     []string        // nil: not parsed yet
	available map[string]bool // collectors; the value is true if they run by default
}

// errRestart is the error for settings that differ from those of the process.
var errRestart = errors.New("prometheus.exporter.unix needs a restart of weir: node_exporter's settings are set once per process, " +
	"by the first such block; only include_exporter_metrics and the lists of collectors can change later")

// setup sets node_exporter's flags and returns the available collectors.
func setup(flags []string) (available map[string]bool, err error) {
	process.Lock()
	defer process.Unlock()
	if process.flags != nil {
		if !slices.Equal(flags, process.flags) {
			return nil, errRestart
		}
		return process.available, nil
	}
	available = switches()
	all := slices.Clone(flags)
	for name := range available {
		// Enable all collectors; each node selects those that run.
		all = append(all, "--collector."+name)
	}
	if _, err := kingpin.CommandLine.Parse(all); err != nil {
		return nil, fmt.Errorf("cannot set up node_exporter's collectors: %w", err)
	}
	process.flags, process.available = flags, available
	return available, nil
}

// switches returns the available collectors and whether they run by default.
func switches() map[string]bool {
	available := map[string]bool{}
	for _, f := range kingpin.CommandLine.Model().Flags {
		name, ok := strings.CutPrefix(f.Name, "collector.")
		if ok && strings.HasPrefix(f.Help, "Enable the "+name+" collector ") {
			available[name] = slices.Equal(f.Default, []string{"true"})
		}
	}
	return available
}

// collectorNames returns the sorted names of the available collectors.
func collectorNames() []string {
	process.Lock()
	defer process.Unlock()
	return slices.Sorted(maps.Keys(switches()))
}

// metrics serves the metrics that the collectors of a node gather.
type metrics struct {
	collectors []string
	logger     *slog.Logger
	buildInfo  prometheus.Collector
	exporter   *prometheus.Registry // metrics about the handler; may be nil
}

// maxRequests is the maximum number of concurrent scrapes, as in node_exporter.
const maxRequests = 40

// newMetrics returns the handler for the arguments. own has the metrics about the handler
// that go on from one to the next.
func newMetrics(a *Arguments, logger *slog.Logger, own *prometheus.Registry) (http.Handler, error) {
	available, err := setup(a.flags())
	if err != nil {
		return nil, err
	}
	run, unknown := a.collectors(available)
	if len(unknown) > 0 {
		logger.Warn("collectors do not exist on this system", "collectors", strings.Join(unknown, ", "))
	}
	m := &metrics{collectors: run, logger: logger, buildInfo: newBuildInfo()}
	// A collector reports invalid settings when it is created.
	if _, err := m.gatherer(run); err != nil {
		return nil, err
	}
	h := http.Handler(m)
	if a.IncludeExporterMetrics {
		m.exporter = own
		h = promhttp.InstrumentMetricHandler(m.exporter, h)
	}
	return limit(h), nil
}

// limit answers 503 if too many requests are in flight.
func limit(h http.Handler) http.Handler {
	slots := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			h.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("more than %d requests at once", maxRequests), http.StatusServiceUnavailable)
		}
	})
}

func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	run, err := m.chosen(r.URL.Query()["collect[]"], r.URL.Query()["exclude[]"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g, err := m.gatherer(run)
	if err != nil {
		m.logger.Error("cannot gather", "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	gatherers := prometheus.Gatherers{g}
	if m.exporter != nil {
		gatherers = append(gatherers, m.exporter)
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(m.logger.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	}).ServeHTTP(w, r)
}

// chosen returns the collectors that a request selects.
func (m *metrics) chosen(collect, exclude []string) ([]string, error) {
	switch {
	case len(collect) > 0 && len(exclude) > 0:
		return nil, errors.New("collect[] and exclude[] cannot be used together")
	case len(collect) > 0:
		for _, name := range collect {
			if !slices.Contains(m.collectors, name) {
				return nil, fmt.Errorf("collector %q is unknown or disabled", name)
			}
		}
		return collect, nil
	}
	return slices.DeleteFunc(slices.Clone(m.collectors), func(name string) bool {
		return slices.Contains(exclude, name)
	}), nil
}

// gatherer returns a registry with the given collectors. Collectors are created
// once in the process, registries for each scrape.
func (m *metrics) gatherer(names []string) (prometheus.Gatherer, error) {
	r := prometheus.NewRegistry()
	if err := r.Register(m.buildInfo); err != nil {
		return nil, err
	}
	if len(names) == 0 { // node_exporter treats an empty list as all collectors
		return r, nil
	}
	nc, err := collector.NewNodeCollector(slog.New(quiet{m.logger.Handler()}), names...)
	if err != nil {
		return nil, fmt.Errorf("cannot make node_exporter's collectors: %w", err)
	}
	for name, c := range nc.Collectors {
		nc.Collectors[name] = guarded{c}
	}
	if err := r.Register(nc); err != nil {
		return nil, err
	}
	return r, nil
}

// guarded converts a panic of a collector to an error. It would end the process,
// because collectors run on goroutines of node_exporter.
type guarded struct{ collector.Collector }

func (g guarded) Update(ch chan<- prometheus.Metric) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("collector panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return g.Collector.Update(ch)
}

// newBuildInfo returns the collector of node_exporter_build_info, with which
// dashboards find hosts.
func newBuildInfo() prometheus.Collector {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/prometheus/node_exporter" {
				version = strings.TrimPrefix(dep.Version, "v")
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "node_exporter_build_info",
		Help: "A metric with a constant '1' value, labeled by version, revision, branch, goversion from which node_exporter was built, and the goos and goarch for the build.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": "", "branch": "", "tags": "",
			"goversion": runtime.Version(), "goos": runtime.GOOS, "goarch": runtime.GOARCH,
		},
	})
	g.Set(1)
	return g
}
