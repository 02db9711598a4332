package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/annotations"
)

// api answers the part of Prometheus's HTTP API that dashboards and promtool use.
// Prometheus's own implementation, package web/api/v1, would make the binary of
// weir 12 MB larger: it links the rule manager, the notifier and an OpenAPI library.
//
// API: https://prometheus.io/docs/prometheus/latest/querying/api/
type api struct {
	db     *tsdb.DB
	engine *promql.Engine
	parser parser.Parser
	reg    *prometheus.Registry
	logger *slog.Logger
}

// handler answers a request with the value of data.
type handler func(*http.Request) (data any, warnings annotations.Annotations, err error)

// register adds the routes to r.
func (a *api) register(r *route.Router) {
	for path, h := range map[string]handler{
		"/query":           a.query,
		"/query_range":     a.queryRange,
		"/query_exemplars": a.exemplars,
		"/format_query":    a.formatQuery,
		"/labels":          a.labelNames,
		"/series":          a.series,
	} {
		r.Get(path, answer(h))
		r.Post(path, answer(h))
	}
	r.Get("/label/:name/values", answer(a.labelValues))
	r.Get("/status/tsdb", answer(a.status))
	// A sandbox has no metadata, targets, rules or alerts.
	for path, data := range map[string]any{
		"/metadata":         struct{}{},
		"/targets":          map[string][]any{"activeTargets": {}, "droppedTargets": {}},
		"/rules":            map[string][]any{"groups": {}},
		"/alerts":           map[string][]any{"alerts": {}},
		"/alertmanagers":    map[string][]any{"activeAlertmanagers": {}, "droppedAlertmanagers": {}},
		"/status/buildinfo": map[string]string{"version": "weir-sandbox", "goVersion": runtime.Version()},
	} {
		r.Get(path, answer(func(*http.Request) (any, annotations.Annotations, error) { return data, nil, nil }))
	}
	write := remote.NewWriteHandler(a.logger, a.reg, a.db,
		remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType},
		false, false, false) // start timestamps as zero samples, type and unit labels, metadata in the WAL
	r.Post("/write", write.ServeHTTP)
	read := remote.NewReadHandler(a.logger, a.reg, a.db, func() config.Config { return config.DefaultConfig },
		maxSamples, 10, 1<<20) // concurrency, bytes per frame
	r.Post("/read", read.ServeHTTP)
}

func (a *api) query(r *http.Request) (any, annotations.Annotations, error) {
	at, err := timeParam(r, "time", time.Now())
	if err != nil {
		return nil, nil, err
	}
	q, err := a.engine.NewInstantQuery(r.Context(), a.db, nil, r.FormValue("query"), at)
	if err != nil {
		return nil, nil, badParam("query", err)
	}
	return run(r, q)
}

func (a *api) queryRange(r *http.Request) (any, annotations.Annotations, error) {
	start, err := timeParam(r, "start", time.Time{})
	if err != nil {
		return nil, nil, err
	}
	end, err := timeParam(r, "end", time.Time{})
	if err != nil {
		return nil, nil, err
	}
	step, err := duration(r.FormValue("step"))
	switch {
	case err != nil:
		return nil, nil, badParam("step", err)
	case step <= 0:
		return nil, nil, badParam("step", errors.New("must be greater than 0"))
	case end.Before(start):
		return nil, nil, badParam("end", errors.New("must not be before start"))
	case end.Sub(start)/step > maxPoints:
		return nil, nil, badParam("step", errors.New("more than 11,000 points per series: use a longer step"))
	}
	q, err := a.engine.NewRangeQuery(r.Context(), a.db, nil, r.FormValue("query"), start, end, step)
	if err != nil {
		return nil, nil, badParam("query", err)
	}
	return run(r, q)
}

// run runs q and returns the result as JSON, because a result is valid only until
// the query is closed.
func run(r *http.Request, q promql.Query) (any, annotations.Annotations, error) {
	defer q.Close()
	ctx := r.Context()
	if s := r.FormValue("timeout"); s != "" {
		timeout, err := duration(s)
		if err != nil {
			return nil, nil, badParam("timeout", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Warnings, res.Err
	}
	data, err := json.Marshal(map[string]any{"resultType": res.Value.Type(), "result": res.Value})
	return json.RawMessage(data), res.Warnings, err
}

func (a *api) exemplars(r *http.Request) (any, annotations.Annotations, error) {
	start, end, err := window(r)
	if err != nil {
		return nil, nil, err
	}
	expr, err := a.parser.ParseExpr(r.FormValue("query"))
	if err != nil {
		return nil, nil, badParam("query", err)
	}
	q, err := a.db.ExemplarQuerier(r.Context())
	if err != nil {
		return nil, nil, err
	}
	found, err := q.Select(start, end, parser.ExtractSelectors(expr)...)
	if err != nil {
		return nil, nil, err
	}
	type point struct {
		Labels    labels.Labels `json:"labels"`
		Value     string        `json:"value"`
		Timestamp float64       `json:"timestamp"` // Unix seconds
	}
	type series struct {
		Labels    labels.Labels `json:"seriesLabels"`
		Exemplars []point       `json:"exemplars"`
	}
	all := []series{}
	for _, f := range found {
		s := series{Labels: f.SeriesLabels}
		for _, e := range f.Exemplars {
			s.Exemplars = append(s.Exemplars, point{e.Labels, strconv.FormatFloat(e.Value, 'f', -1, 64), float64(e.Ts) / 1000})
		}
		all = append(all, s)
	}
	return all, nil, nil
}

func (a *api) formatQuery(r *http.Request) (any, annotations.Annotations, error) {
	expr, err := a.parser.ParseExpr(r.FormValue("query"))
	if err != nil {
		return nil, nil, badParam("query", err)
	}
	return expr.Pretty(0), nil, nil
}

func (a *api) labelNames(r *http.Request) (any, annotations.Annotations, error) {
	return a.names(r, func(q storage.Querier, matchers []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelNames(r.Context(), nil, matchers...)
	})
}

func (a *api) labelValues(r *http.Request) (any, annotations.Annotations, error) {
	name := route.Param(r.Context(), "name")
	return a.names(r, func(q storage.Querier, matchers []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return q.LabelValues(r.Context(), name, nil, matchers...)
	})
}

// names returns the sorted strings that list returns for each selector of the
// request, or without one for all series.
func (a *api) names(r *http.Request, list func(storage.Querier, []*labels.Matcher) ([]string, annotations.Annotations, error)) (any, annotations.Annotations, error) {
	sets, err := a.matchers(r)
	if err != nil {
		return nil, nil, err
	}
	start, end, err := window(r)
	if err != nil {
		return nil, nil, err
	}
	q, err := a.db.Querier(start, end)
	if err != nil {
		return nil, nil, err
	}
	defer q.Close()
	if len(sets) == 0 {
		sets = append(sets, nil)
	}
	names := []string{}
	var warnings annotations.Annotations
	for _, set := range sets {
		found, warn, err := list(q, set)
		if err != nil {
			return nil, warn, err
		}
		warnings.Merge(warn)
		for _, s := range found {
			names = append(names, string([]byte(s))) // copied, because it may not outlive the querier
		}
	}
	slices.Sort(names)
	return limited(r, slices.Compact(names), warnings)
}

func (a *api) series(r *http.Request) (any, annotations.Annotations, error) {
	sets, err := a.matchers(r)
	if err == nil && len(sets) == 0 {
		err = badParam("match[]", errors.New("is missing"))
	}
	if err != nil {
		return nil, nil, err
	}
	start, end, err := window(r)
	if err != nil {
		return nil, nil, err
	}
	q, err := a.db.Querier(start, end)
	if err != nil {
		return nil, nil, err
	}
	defer q.Close()
	// With "series", the storage does not read samples.
	hints := &storage.SelectHints{Start: start, End: end, Func: "series"}
	var found []storage.SeriesSet
	for _, set := range sets {
		found = append(found, q.Select(r.Context(), true, hints, set...))
	}
	all := storage.NewMergeSeriesSet(found, 0, storage.ChainedSeriesMerge)
	series := []labels.Labels{}
	for all.Next() {
		series = append(series, all.At().Labels().Copy())
	}
	if err := all.Err(); err != nil {
		return nil, all.Warnings(), err
	}
	return limited(r, series, all.Warnings())
}

func (a *api) status(*http.Request) (any, annotations.Annotations, error) {
	stats := a.db.Head().Stats(model.MetricNameLabel, 10)
	return map[string]any{
		"headStats": map[string]any{
			"numSeries": stats.NumSeries,
			"minTime":   stats.MinTime,
			"maxTime":   stats.MaxTime,
		},
		"seriesCountByMetricName": stats.IndexPostingStats.CardinalityMetricsStats,
	}, nil, nil
}
