package history

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// processHost has two sources and a sink.
type processHost struct {
	service.Host
	now     time.Time
	nodes   []service.Info
	reloads []service.Reload
}

func (h *processHost) ListComponents() []service.Info { return append([]service.Info{}, h.nodes...) }
func (h *processHost) Reloads() []service.Reload      { return h.reloads }
func (h *processHost) Overview() service.Overview     { return service.Overview{Time: h.now} }

// TestProcess: what weir as a whole uses and does, by point.
func TestProcess(t *testing.T) {
	node := func(id string, to ...string) service.Info {
		return service.Info{ID: id, Stats: new(flow.Stats), SendsTo: to, Health: component.Health{State: component.Healthy}}
	}
	h := &processHost{now: time.Unix(1000, 0), nodes: []service.Info{node("a", "sink"), node("b", "sink"), node("sink")}}
	r := New(clocktest.New(h.now))
	seconds, bytes := 1.0, 100.0
	r.process.usage = func() (float64, float64) { return seconds, bytes }
	take := func() {
		r.Take(h)
		h.now = h.now.Add(Step)
	}
	f := func(want string) {
		t.Helper()
		all, _ := r.Since(time.Time{}, nil)
		got, err := json.Marshal(all.Weir)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	take()
	f(`{"memory":[100]}`)
	seconds, bytes = 6, 200
	h.nodes[0].Stats.Out.Add(50)
	h.nodes[1].Stats.Out.Add(10)
	h.nodes[1].Stats.LinesOut.Add(30)
	h.nodes[2].Stats.Out.Add(1000) // a sink
	h.nodes[2].Health.State = component.Unhealthy
	h.reloads = []service.Reload{{Time: h.now.Add(-time.Hour)}, {Time: h.now.Add(-time.Second)}, {Time: h.now}, {Time: h.now.Add(time.Second)}}
	take()
	f(`{"cpu":[null,0.5],"memory":[100,200],"samples":[null,6],"lines":[null,3],"unhealthy":[0,1],"reloads":[0,2]}`)
	seconds, bytes = math.NaN(), math.NaN() // the operating system does not answer
	take()
	f(`{"cpu":[null,0.5,null],"memory":[100,200,null],"samples":[null,6,0],"lines":[null,3,0],"unhealthy":[0,1,1],"reloads":[0,2,1]}`)
	if all, _ := r.Since(time.Time{}, []string{"a"}); all.Weir != nil {
		t.Error("the history of a node has that of weir")
	}
}

// TestProcessUsage: the operating system answers.
func TestProcessUsage(t *testing.T) {
	r := New(clocktest.New(time.Unix(1000, 0)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx, &processHost{now: time.Unix(1000, 0)})
	if seconds, bytes := r.process.usage(); !(seconds >= 0) || !(bytes > 1<<20) {
		t.Errorf("got %v seconds and %v bytes", seconds, bytes)
	}
}
