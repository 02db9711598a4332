package file

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/refresh"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// config implements Prometheus's discovery.Config for files.
type config struct {
	args  *Arguments
	known *known
}

var _ sd.Config = (*config)(nil)

// metrics are the metrics of refreshing.
type metrics struct {
	sd.NoopDiscovererMetrics
	sd.RefreshMetricsInstantiator
}

// Name returns Prometheus's name of the discovery.
func (*config) Name() string { return "file" }

// NewDiscovererMetrics returns the metrics for NewDiscoverer.
func (*config) NewDiscovererMetrics(_ prometheus.Registerer, r sd.RefreshMetricsInstantiator) sd.DiscovererMetrics {
	return &metrics{RefreshMetricsInstantiator: r}
}

// NewDiscoverer returns a discoverer that reads the files immediately and then at
// intervals.
func (c *config) NewDiscoverer(o sd.DiscovererOptions) (sd.Discoverer, error) {
	m, ok := o.Metrics.(*metrics)
	if !ok {
		return nil, fmt.Errorf("BUG: metrics of type %T", o.Metrics)
	}
	return refresh.NewDiscovery(refresh.Options{
		Logger:   o.Logger,
		Mech:     c.Name(),
		SetName:  o.SetName,
		Interval: c.args.RefreshInterval,
		RefreshF: func(context.Context) ([]*targetgroup.Group, error) {
			return c.known.read(c.args.Files, o.Logger), nil
		},
		MetricsInstantiator: m,
	}), nil
}

// known is the number of groups of each file. The groups of a file that cannot be
// read stay; those of a file that was removed are ended.
type known struct {
	mu     sync.Mutex
	groups map[string]int
}

// read returns the groups of all files that can be read, and empty ones for
// removed files.
func (k *known) read(patterns []string, log *slog.Logger) (all []*targetgroup.Group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := map[string]int{}
	for _, p := range patterns {
		paths, err := files.Do(p, "listing", func() ([]string, error) { return filepath.Glob(p) })
		if err != nil {
			log.Error("cannot find files", "pattern", p, "err", err)
		}
		for _, path := range paths {
			groups, err := read(path)
			if err != nil {
				log.Error("cannot read targets", "path", path, "err", err)
				now[path] = k.groups[path]
				continue
			}
			now[path] = len(groups)
			all = append(all, groups...)
		}
	}
	for path, n := range k.groups {
		for i := now[path]; i < n; i++ {
			all = append(all, &targetgroup.Group{Source: source(path, i)})
		}
	}
	k.groups = now
	return all
}

// read returns the groups of one file, with the same labels as in Prometheus.
func read(path string) (groups []*targetgroup.Group, err error) {
	text, err := files.Read(path, files.MaxTargets)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".json") {
		groups, err = discovery.ParseJSON(text)
	} else {
		err = yaml.UnmarshalStrict(text, &groups)
	}
	if err != nil {
		return nil, withoutContent(err)
	}
	for i, g := range groups {
		if g == nil {
			return nil, errors.New("a group is null")
		}
		g.Source = source(path, i)
		if g.Labels == nil {
			g.Labels = model.LabelSet{}
		}
		g.Labels[model.MetaLabelPrefix+"filepath"] = model.LabelValue(path)
	}
	return groups, nil
}

// quoted matches the parts of a YAML error that quote the file.
var quoted = regexp.MustCompile("`[^`]*`")

// withoutContent removes the content of the file from an error, because a pattern
// may match a file that contains secrets instead of targets.
func withoutContent(err error) error {
	if e, ok := errors.AsType[*yaml.TypeError](err); ok {
		for i, line := range e.Errors {
			e.Errors[i] = quoted.ReplaceAllString(line, "a value")
		}
	}
	return err
}

func source(path string, group int) string { return fmt.Sprintf("%s:%d", path, group) }
