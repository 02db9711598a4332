package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// tapHost is a host with one node, which may be replaced or removed. The node
// drops samples whose value is 0 and gives the others the label mark.
type tapHost struct {
	*host
	mu    sync.Mutex
	infos []service.Info
}

func (h *tapHost) ListComponents() []service.Info {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.infos
}

// set replaces the node and returns its gate. Another node exports secrets.
func (h *tapHost) set(secrets ...component.Secret) *flow.Receiver {
	stats := new(flow.Stats)
	sink := flow.NewReceiver("a.sink.b", batch.SignalMetrics|batch.SignalLogs, nil, nil)
	sink.Set(taker{})
	r := flow.NewReceiver("m.one/a.mark.x", batch.SignalMetrics|batch.SignalLogs, stats, nil)
	r.Set(marker{taker{}, flow.NewOutput(stats, []*flow.Receiver{sink})})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.infos = []service.Info{
		{ID: "m.one/a.mark.x", Stats: stats, SendsTo: []string{"a.sink.b"}, Arguments: &arguments{Password: "hunter2"}},
		{ID: "m.one", Stats: new(flow.Stats)},
		{ID: "a.secret.x", Exports: map[string]any{"secrets": secrets}},
	}
	return r
}

func (h *tapHost) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.infos = nil
}

type marker struct {
	taker
	out *flow.Output
}

func (m marker) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	out := *b.Select(func(row int) bool { return b.V[row] != 0 })
	out.Series = slices.Clone(out.Series)
	for i, s := range out.Series {
		out.Series[i] = s.Derive(append(s.AppendLabels(nil), batch.Label{Name: "mark", Value: "x"}))
	}
	return m.out.SendMetrics(ctx, &out)
}

// tapped starts a tap and returns a function that reads its next line.
func tapped(t *testing.T, c *nethttp.Client, base, query string) (next func() string) {
	t.Helper()
	r, err := nethttp.NewRequestWithContext(t.Context(), "GET", base+"/api/v0/tap/m.one/a.mark.x?"+query, nil)
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
	lines := bufio.NewReader(res.Body)
	return func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(line, "\n")
	}
}

func send(t *testing.T, to *flow.Receiver, text string) {
	t.Helper()
	if err := to.ConsumeMetrics(t.Context(), parse(t, text)); err != nil {
		t.Fatal(err)
	}
}

func wantLines(t *testing.T, next func() string, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(); got != w {
			t.Errorf("got %q, want %q", got, w)
		}
	}
}

func TestTap(t *testing.T) {
	h := &tapHost{host: &host{}}
	gate := h.set("exported-secret")
	s := http.New(http.Options{Listen: "127.0.0.1:0"})
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, h) }()
	c, base := owner(t, s), "http://"+s.Address()

	const limit = "# end: the limit of records is reached"
	f := func(query, text string, want ...string) {
		t.Helper()
		next := tapped(t, c, base, query)
		send(t, gate, text)
		wantLines(t, next, append(want, "EOF")...)
	}
	f("limit=1", "a 1 5\n", `a{mark="x"} 1 5`, limit)
	f("limit=2&side=in", "a 0 5\nb 1 5\nc 1 5\n", "a 0 5", "b 1 5", limit)
	f("limit=1&side=in&where="+url.QueryEscape(`name == "b" && value > 0`), "a 0 5\nb 1 5\n", "b 1 5", limit)
	f("limit=2&side=diff", "a 0 5\nb 1 5\n", "- a 0 5", `~ b 1 5 : mark="x" added`, limit)
	f("limit=1&format=exposition", "# TYPE a gauge\na 1 5\n", "# TYPE a gauge", `a{mark="x"} 1 5`, limit)
	f("limit=1&side=in", `a{key="hunter2",other="my exported-secret"} 1 5`+"\n", `a{key="(secret)",other="my (secret)"} 1 5`, limit)

	// The last batch is masked as well.
	for of, want := range map[string]string{"in": `a{key="(secret)",other="my (secret)"} 1 5`, "out": `a{key="(secret)",other="my (secret)",mark="x"} 1 5`} {
		if _, body := get(t, c, "GET", base+"/api/v0/batch/m.one/a.mark.x?of="+of); body != want {
			t.Errorf("%s: got %q, want %q", of, body, want)
		}
	}

	for query, want := range map[string]string{
		"where=name+%3D": "400 cannot use expression: unexpected token Operator(\"=\"); use == to compare values (1:6)\n | name =\n |      ^\n 'weir help expr' describes expressions",
		"where=name":     "400 cannot use expression: it must be true or false, not a string (1:1)\n | name\n | ^\n 'weir help expr' describes expressions",
		"side=up":        "400 side must be in, out or diff, not \"up\"",
		"limit=0":        "400 limit must be a number greater than 0, not \"0\"",
		"format=yaml":    "400 format must be text, json or exposition, not \"yaml\"",
		"sides=in":       "400 there is no parameter \"sides\"; there are side, where, limit, rate and format",
		"rate=0":         "400 rate must be a number from 1 to 1000, not \"0\"",
		"rate=1001":      "400 rate must be a number from 1 to 1000, not \"1001\"",
	} {
		status, body := get(t, c, "GET", base+"/api/v0/tap/m.one/a.mark.x?"+query)
		if got := fmt.Sprint(status, " ", body); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	if status, body := get(t, c, "GET", base+"/api/v0/tap/nowhere"); status != 404 || body != "there is no node nowhere" {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := get(t, c, "GET", base+"/api/v0/tap/m.one"); status != 400 || body != "m.one contains nodes; tap one of them, such as m.one/a.mark.x" {
		t.Errorf("got %d %s", status, body)
	}

	// weir stops.
	next := tapped(t, c, base, "")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantLines(t, next, "# error: weir stops", "EOF")
}

// A tap continues if its node was replaced, and ends if it was removed or after
// 10 minutes. Secrets that appear later are masked.
func TestTapOfChangingNode(t *testing.T) {
	h := &tapHost{host: &host{}}
	gate := h.set()
	fake := clocktest.New(time.Unix(1000, 0))
	s := http.New(http.Options{Listen: "127.0.0.1:0", Clock: fake})
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, h) }()
	c, base := owner(t, s), "http://"+s.Address()
	tick := func(d time.Duration) {
		t.Helper()
		if err := fake.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		fake.Advance(d)
	}
	next := tapped(t, c, base, "format=json&side=in")
	send(t, gate, `a{x="rotated"} 1 5`+"\n")
	wantLines(t, next, `{"kind":"record","time":"1970-01-01T00:16:40Z","record":{"name":"a","labels":{"x":"rotated"},"value":"1","time":"1970-01-01T00:00:00.005Z"}}`)
	gate = h.set("rotated")
	tick(time.Second)
	if err := fake.WaitTimers(t.Context(), 1); err != nil { // it has seen the new node
		t.Fatal(err)
	}
	send(t, gate, `a{x="rotated"} 2 5`+"\n")
	wantLines(t, next, `{"kind":"record","time":"1970-01-01T00:16:41Z","record":{"name":"a","labels":{"x":"(secret)"},"value":"2","time":"1970-01-01T00:00:00.005Z"}}`)
	h.remove()
	tick(time.Second)
	wantLines(t, next, `{"kind":"error","text":"m.one/a.mark.x was removed from the config"}`, "EOF")

	h.set()
	next = tapped(t, c, base, "")
	tick(10 * time.Minute)
	wantLines(t, next, "# end: the limit of 10 minutes for one tap is reached", "EOF")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTapLimit(t *testing.T) {
	h := &tapHost{host: &host{}}
	h.set()
	s := http.New(http.Options{Listen: "127.0.0.1:0"})
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, h) }()
	c, base := owner(t, s), "http://"+s.Address()
	for range 10 {
		tapped(t, c, base, "")
	}
	if status, body := get(t, c, "GET", base+"/api/v0/tap/m.one/a.mark.x"); status != 503 || body != "there are 10 taps already" {
		t.Errorf("got %d %s", status, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client that reads nothing is disconnected, and does not delay the node.
func TestTapSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &tapHost{host: &host{}}
		gate := h.set()
		s := http.New(http.Options{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx, h) }()
		l := pipes{make(chan net.Conn)}
		srv := &nethttp.Server{Handler: s.Handler()}
		served := make(chan error)
		go func() { served <- srv.Serve(l) }()
		client, server := net.Pipe()
		synctest.Wait() // the service answers for its host
		l.conns <- server
		if _, err := io.WriteString(client, "GET /api/v0/tap/m.one/a.mark.x?side=in HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it has a tap
		began := time.Now()
		for range 1000 {
			send(t, gate, "a 1 5\n")
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the node waited for %s", waited)
		}
		time.Sleep(11 * time.Second) // of the bubble
		synctest.Wait()
		if text, err := io.ReadAll(client); err != nil || len(text) > 0 {
			t.Errorf("the client got %d bytes and %v, want that it was disconnected", len(text), err)
		}
		close(l.conns)
		<-served
		stop()
		<-done
	})
}
