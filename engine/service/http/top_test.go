package http_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// followed starts a response of /api/v0/top and returns a function that reads its next
// line.
func followed(t *testing.T, c *nethttp.Client, base, query string) (next func() (http.Usage, error), end func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	r, err := nethttp.NewRequestWithContext(ctx, "GET", base+"/api/v0/top?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		t.Fatalf("status %d", res.StatusCode)
	}
	lines := json.NewDecoder(bufio.NewReader(res.Body))
	return func() (u http.Usage, err error) { return u, lines.Decode(&u) }, end
}

// newTop returns a running service with a fake clock.
func newTop(t *testing.T, h service.Host) (c *nethttp.Client, base string, clock *clocktest.Fake, stop func()) {
	t.Helper()
	clock = clocktest.New(time.Unix(1000, 0))
	s := http.New(http.Options{Listen: "127.0.0.1:0", Clock: clock})
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, h) }()
	return owner(t, s), "http://" + s.Address(), clock, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTop(t *testing.T) {
	h := &tapHost{host: &host{}}
	gate := h.set()
	var sink, old flow.Stats
	h.infos = append(h.infos, service.Info{ID: "a.sink.b", Name: "a.sink", Stats: &sink, Health: component.Health{State: component.Unhealthy},
		Backlog: component.Backlog{Journal: true, Samples: 5, Lines: 2, Oldest: time.Unix(990, 0)}},
		service.Info{ID: "foreach.empty", Name: "foreach", Stats: &old}, service.Info{ID: "import.git.x", Name: "import.git", Stats: &old})
	mark := h.infos[0].Stats
	mark.Drop("script", 4)
	mark.Drop("script_error", 1)
	sink.DropLines("rejected", 7)
	c, base, clock, stop := newTop(t, h)
	next, _ := followed(t, c, base, "interval=1s")
	node := func(u http.Usage, id string) http.NodeUsage {
		t.Helper()
		for _, n := range u.Nodes {
			if n.ID == id {
				n.CPU = 0 // depends on the machine
				return n
			}
		}
		t.Fatalf("there is no node %s in %v", id, u.Nodes)
		return http.NodeUsage{}
	}
	first, err := next()
	if err != nil {
		t.Fatal(err)
	}
	// Without the module around the node, the foreach and the import.
	if len(first.Nodes) != 2 {
		t.Errorf("got %d nodes, want 2: %v", len(first.Nodes), first.Nodes)
	}
	oldest := time.Unix(990, 0).UTC()
	want := http.NodeUsage{ID: "a.sink.b", Name: "a.sink", Health: "unhealthy", Dropped: map[string]uint64{}, Lost: map[string]uint64{"rejected": 7}, Queue: 7, Oldest: &oldest}
	got := node(first, "a.sink.b")
	if utc := got.Oldest.UTC(); true {
		got.Oldest = &utc
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sink (-want +got)\n%s", diff)
	}

	tick := func(d time.Duration) {
		t.Helper()
		if err := clock.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		clock.Advance(d)
	}
	send(t, gate, "a 0 5\nb 1 5\n")
	tick(time.Second)
	u, err := next()
	if err != nil {
		t.Fatal(err)
	}
	n := node(u, "m.one/a.mark.x")
	if n.BytesIn == 0 || n.BytesOut == 0 {
		t.Errorf("got %d bytes in and %d out", n.BytesIn, n.BytesOut)
	}
	n.BytesIn, n.BytesOut = 0, 0
	want = http.NodeUsage{ID: "m.one/a.mark.x", Health: "unknown", Calls: 1, RecordsIn: 2, RecordsOut: 1,
		Dropped: map[string]uint64{"script": 4}, Lost: map[string]uint64{"script_error": 1}}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("node (-want +got)\n%s", diff)
	}

	// The node is removed and added again, then removed.
	gate = h.set()
	tick(time.Second)
	if u, err = next(); err != nil || node(u, "m.one/a.mark.x").RecordsIn != 0 {
		t.Errorf("got %v %v, want a new node", u, err)
	}
	send(t, gate, "a 0 5\nb 1 5\n")
	tick(time.Second)
	if u, err = next(); err != nil || node(u, "m.one/a.mark.x").Calls != 1 {
		t.Errorf("got %v %v, want one call", u, err)
	}
	h.remove()
	tick(time.Second)
	if u, err = next(); err != nil || len(u.Nodes) != 0 {
		t.Errorf("got %v %v, want no nodes", u, err)
	}

	// A second client with a limit of lines; then weir stops.
	other, _ := followed(t, c, base, "lines=1")
	if _, err := other(); err != nil {
		t.Error(err)
	}
	if _, err := other(); err == nil {
		t.Error("the response does not end after its last line")
	}
	stop()
	if u, err := next(); err != nil || u.Error != "weir stops" {
		t.Errorf("got %v %v, want the error that weir stops", u, err)
	}
	if _, err := next(); err == nil {
		t.Error("the response does not end")
	}
}

func TestTopMistakes(t *testing.T) {
	h := &tapHost{host: &host{}}
	h.set()
	c, base, _, stop := newTop(t, h)
	defer stop()
	for query, want := range map[string]string{
		"interval=x":   "400 interval must be a duration from 500ms to 1m0s, such as 2s, not \"x\"",
		"interval=1ms": "400 interval must be a duration from 500ms to 1m0s, such as 2s, not \"1ms\"",
		"interval=2m":  "400 interval must be a duration from 500ms to 1m0s, such as 2s, not \"2m\"",
		"lines=0":      "400 lines must be a number greater than 0, not \"0\"",
		"intervall=1s": "400 there is no parameter \"intervall\"; there are interval and lines",
	} {
		status, body := get(t, c, "GET", base+"/api/v0/top?"+query)
		if got := fmt.Sprint(status, " ", body); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	var ends []func()
	for range 10 {
		_, end := followed(t, c, base, "")
		ends = append(ends, end)
	}
	if status, body := get(t, c, "GET", base+"/api/v0/top"); status != 503 || body != "10 clients follow the nodes already" {
		t.Errorf("got %d %s", status, body)
	}
	for _, end := range ends {
		end()
	}
}
