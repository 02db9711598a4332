package sandbox

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"runtime"
	"time"

	"github.com/grafana/regexp"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// apiParts are the parts of Prometheus's HTTP API.
type apiParts struct {
	db     *tsdb.DB
	stats  *tsdb.DBStats
	engine *promql.Engine
	reg    *prometheus.Registry
	addr   string
	logger *slog.Logger
}

// newAPI returns Prometheus's API with remote write. Endpoints for features that
// a sandbox does not have (targets, rules, alertmanagers) return empty lists.
func newAPI(p apiParts) *v1.API {
	started := time.Now()
	none := nothing{}
	return v1.NewAPI(
		p.engine, p.db, p.db, p.db, p.db,
		func(context.Context) v1.ScrapePoolsRetriever { return none },
		func(context.Context) v1.TargetRetriever { return none },
		func(context.Context) v1.AlertmanagerRetriever { return none },
		func() config.Config { return config.DefaultConfig },
		map[string]string{},
		v1.GlobalURLOptions{ListenAddress: p.addr, Host: p.addr, Scheme: "http"},
		func(f http.HandlerFunc) http.HandlerFunc { return f }, // the server listens only when it is ready
		admin{p.db, p.stats}, p.db.Dir(),
		false, false, 0, // admin API, search
		p.logger,
		func(context.Context) v1.RulesRetriever { return none },
		50_000_000, 10, 1<<20, // remote read: samples, concurrency, bytes per frame
		false,                    // not an agent
		regexp.MustCompile("^$"), // allowed origins
		func() (v1.RuntimeInfo, error) {
			return v1.RuntimeInfo{
				StartTime: started, ServerTime: time.Now(), CWD: p.db.Dir(), ReloadConfigSuccess: true, LastConfigTime: started,
				GoroutineCount: runtime.NumGoroutine(), GOMAXPROCS: runtime.GOMAXPROCS(0),
			}, nil
		},
		&v1.PrometheusVersion{Version: "weir-sandbox", GoVersion: runtime.Version()},
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, nil, false },
		p.reg, p.reg, nil,
		true, remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType},
		false, false, false, // OTLP
		false, // start timestamps as zero samples
		5*time.Minute,
		false, false, // type and unit labels, metadata in the WAL
		nil, features.NewRegistry(),
		v1.OpenAPIOptions{ExternalURL: "http://" + p.addr},
		parser.NewParser(parser.Options{}),
	)
}

// admin answers the requests of the status pages about the storage.
type admin struct {
	*tsdb.DB
	stats *tsdb.DBStats
}

func (a admin) Stats(label string, limit int) (*tsdb.Stats, error) {
	return a.Head().Stats(label, limit), nil
}

func (a admin) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return a.stats.Head.WALReplayStatus.GetWALReplayStatus(), nil
}

func (a admin) BlockMetas() ([]tsdb.BlockMeta, error) { return a.DB.BlockMetas(), nil }

// nothing returns no targets, no rules and no alertmanagers.
type nothing struct{}

func (nothing) ScrapePools() []string                                 { return nil }
func (nothing) TargetsActive() map[string][]*scrape.Target            { return nil }
func (nothing) TargetsDropped() map[string][]*scrape.Target           { return nil }
func (nothing) TargetsDroppedCounts() map[string]int                  { return nil }
func (nothing) ScrapePoolConfig(string) (*config.ScrapeConfig, error) { return nil, nil }
func (nothing) Alertmanagers() []*url.URL                             { return nil }
func (nothing) DroppedAlertmanagers() []*url.URL                      { return nil }
func (nothing) RuleGroups() []*rules.Group                            { return nil }
func (nothing) AlertingRules() []*rules.AlertingRule                  { return nil }
