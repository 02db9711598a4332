package relabel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
)

// database is a receiver that writes into a real TSDB.
type database struct {
	db     *tsdb.DB
	engine *promql.Engine
	// deaf makes it ignore markers, to show that they are needed.
	deaf bool
}

func newDatabase(t *testing.T) *database {
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &database{db: db, engine: engine}
}

func (d *database) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	app := d.db.Appender(ctx)
	for i, s := range b.Series {
		if d.deaf && batch.IsStale(b.V[i]) {
			continue
		}
		if _, err := app.Append(0, s.PromLabels(), b.T[i], b.V[i]); err != nil {
			return err
		}
	}
	return app.Commit()
}

// query returns the result of an instant query as text.
func (d *database) query(t *testing.T, expr string, ms int64) string {
	t.Helper()
	q, err := d.engine.NewInstantQuery(t.Context(), d.db, nil, expr, time.UnixMilli(ms))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(t.Context())
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	vec, err := res.Vector()
	if err != nil {
		t.Fatal(err)
	}
	if len(vec) != 1 {
		return fmt.Sprintf("%d results", len(vec))
	}
	return fmt.Sprint(vec[0].F)
}

// TestSumIsRightAfterChange: three targets with ten series of value 1 each are
// scraped every 15 s while the rules change repeatedly.
func TestSumIsRightAfterChange(t *testing.T) {
	const targets, perTarget, interval = 3, 10, 15_000
	generations := [][]*rule.Rule{
		{set("v", "1")},
		{set("v", "2")},
		{set("v", "3"), set("instance", "merged"), set("v", "3")},
		{drop("m0")},
		{},
		{set("v", "1")},
	}
	wants := []string{"30", "30", "30", "27", "30", "30"}

	run := func(deaf bool) (wrong int) {
		d := newDatabase(t)
		d.deaf = deaf
		gate := flow.NewReceiver("db", batch.SignalMetrics, nil, nil)
		gate.Set(d)
		c := build(t, componenttest.New(t, "r"), arguments(gate, generations[0]...))
		series := make([][]*batch.Series, targets)
		for i := range series {
			for j := range perTarget {
				series[i] = append(series[i], batch.NewSeries([]batch.Label{
					{Name: "__name__", Value: fmt.Sprint("m", j)}, {Name: "target", Value: fmt.Sprint(i)},
				}))
			}
		}
		now := int64(1_000_000)
		for g, rules := range generations {
			if err := c.Update(arguments(gate, rules...)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				now += interval
				for i, ss := range series {
					b := at(now+int64(i)*100, ss...)
					b.Source = uint64(i + 1)
					send(t, c, b)
				}
				if got := d.query(t, `sum({__name__=~"m.*"})`, now+1000); got != wants[g] {
					wrong++
					if !deaf {
						t.Errorf("generation %d: got sum %s, want %s", g, got, wants[g])
					}
				}
			}
		}
		return wrong
	}
	run(false)
	if run(true) == 0 {
		t.Error("the sums are right without markers too: the test shows nothing")
	}
}
