package node_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting/node"
)

// database is a receiver that writes into a real TSDB.
type database struct {
	db     *tsdb.DB
	engine *promql.Engine
	deaf   bool // it leaves markers out, to show that they matter
}

func newDatabase(t *testing.T) *database {
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
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

// query returns an instant query's result in text.
func (d *database) query(t *testing.T, expr string, at time.Time) string {
	t.Helper()
	q, err := d.engine.NewInstantQuery(t.Context(), d.db, nil, expr, at)
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

// TestSumOfPolls: an instant sum over what a source polls is right one poll
// after each save, and nothing is left when it is gone.
func TestSumOfPolls(t *testing.T) {
	run := func(deaf bool) (wrong int) {
		d := newDatabase(t)
		d.deaf = deaf
		n := newHarness(t)
		n.sink.Receiver().Set(d)
		expect := func(want string) {
			t.Helper()
			awaitIdle(t, n)
			if got := d.query(t, "sum(m)", n.Clock.Now()); got != want {
				wrong++
				if !deaf {
					t.Errorf("sum is %s, want %s", got, want)
				}
			}
		}
		const script = `return weir.source { interval = "15s", poll = function(ctx)
			for i = 1, %d do ctx.emit { name = "m", labels = { i = tostring(i), v = "%d" }, value = 1 } end
			if %t then error("boom") end
		end }`
		n.save(fmt.Sprintf(script, 10, 1, false), "")
		expect("10")
		for i, f := range []struct {
			series int
			fails  bool
			want   string
		}{{10, false, "10"}, {7, false, "7"}, {12, false, "12"}, {12, true, "0 results"}, {3, false, "3"}} {
			n.save(fmt.Sprintf(script, f.series, 2+i, f.fails), "")
			awaitIdle(t, n)
			n.Clock.Advance(15 * time.Second)
			expect(f.want)
		}
		n.remove()
		n.Clock.Advance(time.Second)
		if got := d.query(t, "sum(m)", n.Clock.Now()); got != "0 results" {
			wrong++
			if !deaf {
				t.Errorf("sum is %s after the source is gone", got)
			}
		}
		return wrong
	}
	run(false)
	if wrong := run(true); wrong < 4 {
		t.Errorf("without markers %d sums are wrong: the test shows nothing", wrong)
	}
}

// awaitIdle waits until all that is due has been done.
func awaitIdle(t *testing.T, n *harness) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := n.c.(*node.Component).Settled(ctx); err != nil {
		t.Fatal(err)
	}
}
