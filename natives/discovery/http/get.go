package http

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/refresh"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// config implements Prometheus's discovery.Config for a URL.
type config struct{ args *Arguments }

var _ sd.Config = (*config)(nil)

// metrics are the metrics of refreshing, and the counter of Prometheus's own
// discovery.
type metrics struct {
	sd.RefreshMetricsInstantiator
	registerer prometheus.Registerer
	failures   prometheus.Counter
}

// Register registers the counter.
func (m *metrics) Register() error { return m.registerer.Register(m.failures) }

// Unregister reverts Register.
func (m *metrics) Unregister() { m.registerer.Unregister(m.failures) }

// Name returns Prometheus's name of the discovery.
func (*config) Name() string { return "http" }

// NewDiscovererMetrics returns the metrics for NewDiscoverer.
func (*config) NewDiscovererMetrics(reg prometheus.Registerer, r sd.RefreshMetricsInstantiator) sd.DiscovererMetrics {
	return &metrics{r, reg, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "prometheus_sd_http_failures_total", Help: "Number of HTTP service discovery refresh failures.",
	})}
}

// NewDiscoverer returns a discoverer that requests the URL immediately and then
// at intervals.
func (c *config) NewDiscoverer(o sd.DiscovererOptions) (sd.Discoverer, error) {
	m, ok := o.Metrics.(*metrics)
	if !ok {
		return nil, fmt.Errorf("BUG: metrics of type %T", o.Metrics)
	}
	client, err := httpclient.NewClient(&c.args.Client, o.HTTPClientOptions...)
	if err != nil {
		return nil, err
	}
	client.Timeout = c.args.RefreshInterval
	g := &getter{args: c.args, client: client}
	return refresh.NewDiscovery(refresh.Options{
		Logger:   o.Logger,
		Mech:     c.Name(),
		SetName:  o.SetName,
		Interval: c.args.RefreshInterval,
		RefreshF: func(ctx context.Context) ([]*targetgroup.Group, error) {
			groups, err := g.get(ctx)
			if err != nil {
				m.failures.Inc()
			}
			return groups, err
		},
		MetricsInstantiator: m,
	}), nil
}

// getter requests the URL.
type getter struct {
	args   *Arguments
	client *http.Client
}

// contentType matches the Content-Type that a response must have, as in
// Prometheus.
var contentType = regexp.MustCompile(`^(?i:application/json(;\s*charset=("utf-8"|utf-8))?)$`)

// get returns the groups in the response, with the same labels as in Prometheus.
func (g *getter) get(ctx context.Context) ([]*targetgroup.Group, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.args.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-Prometheus-Refresh-Interval-Seconds", strconv.FormatFloat(g.args.RefreshInterval.Seconds(), 'f', -1, 64))
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused if the rest is short
		resp.Body.Close()
	}()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("server returned HTTP status %s", resp.Status)
	}
	if t := resp.Header.Get("Content-Type"); !contentType.MatchString(strings.TrimSpace(t)) {
		return nil, fmt.Errorf("unsupported content type %q", t)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, files.MaxTargets+1))
	if err != nil {
		return nil, err
	}
	if len(body) > files.MaxTargets {
		return nil, fmt.Errorf("the answer is larger than %d MiB: let the server return fewer targets, or divide them among several blocks", files.MaxTargets>>20)
	}
	groups, err := discovery.ParseJSON(body)
	if err != nil {
		return nil, err
	}
	for i, group := range groups {
		group.Source = fmt.Sprintf("%s:%d", g.args.URL, i)
		group.Labels[model.MetaLabelPrefix+"url"] = model.LabelValue(g.args.URL)
	}
	return groups, nil
}
