package http_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// journal has the events of a host.
type journal struct {
	mu     sync.Mutex
	events []service.ReloadEvent
	more   chan struct{}
}

func newJournal() *journal { return &journal{more: make(chan struct{})} }

func (j *journal) add(ev service.ReloadEvent) {
	j.mu.Lock()
	defer j.mu.Unlock()
	ev.ID = uint64(len(j.events) + 1)
	j.events = append(j.events, ev)
	close(j.more)
	j.more = make(chan struct{})
}

func (j *journal) after(id uint64) ([]service.ReloadEvent, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[min(id, uint64(len(j.events))):], j.more
}

// follow asks for events and returns a function that reads the next block of lines.
func follow(t *testing.T, c *nethttp.Client, base, lastID string) (next func() string, end func()) {
	t.Helper()
	r, err := nethttp.NewRequestWithContext(t.Context(), "GET", base+"/api/v0/reloads/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(res.Body)
	return func() string {
		t.Helper()
		var b strings.Builder
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return "ended: " + err.Error()
			}
			if line == "\n" {
				return b.String()
			}
			b.WriteString(line)
		}
	}, func() { res.Body.Close() }
}

// TestReloadEvents: a client gets the events from the moment on that it asks, those
// after the last event that it has seen, a heartbeat when there are none, and the end
// when weir stops.
func TestReloadEvents(t *testing.T) {
	j := newJournal()
	h := &host{events: j.after, overview: service.Overview{Started: time.UnixMilli(1000)}}
	fake := clocktest.New(time.Unix(1000, 0))
	s := http.New(http.Options{Listen: "127.0.0.1:0", Clock: fake})
	if err := s.Update(new(http.Arguments)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, h) }()
	c, base := owner(t, s), "http://"+s.Address()

	at := time.Unix(5, 0).UTC()
	j.add(service.ReloadEvent{Time: at, Node: "a.b.c", Trial: &service.Trial{Version: "1", Step: "test", Since: at}})
	next, end := follow(t, c, base, "")
	defer end()
	want := func(next func() string, want string) {
		t.Helper()
		if got := next(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want(next, "retry: 2000\n")
	j.add(service.ReloadEvent{Time: at, Node: "a.b.c", Trial: &service.Trial{Version: "2", Step: "canary", Since: at}})
	second := "id: 1000-2\nevent: step\ndata: {\"time\":\"1970-01-01T00:00:05Z\",\"node\":\"a.b.c\",\"version\":\"2\",\"step\":\"canary\"}\n"
	want(next, second)
	j.add(service.ReloadEvent{Reload: &service.Reload{ID: 7, Outcome: "applied"}})
	if got := next(); !strings.HasPrefix(got, "id: 1000-3\nevent: reload\ndata: {\"id\":7,") {
		t.Errorf("got %q", got)
	}
	if err := fake.WaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	fake.Advance(15 * time.Second)
	want(next, ": heartbeat\n")

	again, end := follow(t, c, base, "1000-1")
	defer end()
	want(again, "retry: 2000\n")
	want(again, second)
	// The IDs of another process mean nothing.
	other, end := follow(t, c, base, "999-3")
	defer end()
	want(other, "retry: 2000\n")
	if got := other(); !strings.HasPrefix(got, "id: 1000-1\n") {
		t.Errorf("got %q", got)
	}

	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	want(next, "ended: EOF")
}

// TestReloadEventsLimit: the clients are limited in number, and those that went make
// room.
func TestReloadEventsLimit(t *testing.T) {
	h := &host{events: newJournal().after}
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	for range 20 {
		next, end := follow(t, c, base, "")
		defer end()
		next()
	}
	if status, body := get(t, c, "GET", base+"/api/v0/reloads/events"); status != 503 || body != "20 clients follow the events already" {
		t.Errorf("got %d %s", status, body)
	}
}

// pipes is a listener of connections in memory.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestReloadEventsSlowClient: a client that reads nothing is disconnected, and does not
// delay whoever adds events.
func TestReloadEventsSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := http.New(http.Options{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx, &host{events: j.after}) }()
		l := pipes{make(chan net.Conn)}
		srv := &nethttp.Server{Handler: s.Handler()}
		served := make(chan error)
		go func() { served <- srv.Serve(l) }()
		client, server := net.Pipe()
		synctest.Wait() // the service answers for its host
		l.conns <- server
		if _, err := io.WriteString(client, "GET /api/v0/reloads/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 1000 {
			j.add(service.ReloadEvent{Reload: &service.Reload{Message: strings.Repeat("x", 1000)}})
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("events waited for %s", waited)
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

// TestReloadsRoute: the records are a list, also while there are none.
func TestReloadsRoute(t *testing.T) {
	h := &host{}
	s := run(t, h, http.Options{})
	c, url := owner(t, s), "http://"+s.Address()+"/api/v0/reloads"
	if status, body := get(t, c, "GET", url); status != 200 || strings.Join(strings.Fields(body), "") != `{"reloads":[]}` {
		t.Errorf("got %d %s", status, body)
	}
	h.records = []service.Reload{{ID: 3, Outcome: "partial", Nodes: []service.ReloadNode{{ID: "a", Action: "refused", From: "1", To: "2", Step: "test"}}}}
	_, body := get(t, c, "GET", url)
	var got http.Reloads
	if err := json.Unmarshal([]byte(body), &got); err != nil || fmt.Sprint(got.Reloads) != fmt.Sprint(h.records) {
		t.Errorf("got %s, %v", body, err)
	}
}

// TestReloadAnswer: the answer has the records as JSON for a caller that accepts it, and
// their worst outcome; else their messages.
func TestReloadAnswer(t *testing.T) {
	h := &host{}
	s := run(t, h, http.Options{})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(want string, records ...service.Reload) {
		t.Helper()
		h.records = records
		status, body := get(t, c, "POST", base+"/-/reload?wait=true", "Accept", "application/json")
		var got http.Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.Outcome != want || len(got.Reloads) != len(records) {
			t.Errorf("got %d %s, want outcome %s", status, body, want)
		}
		if !h.canaries {
			t.Error("the request did not wait for canaries")
		}
	}
	node := func(action string) []service.ReloadNode { return []service.ReloadNode{{ID: "a", Action: action}} }
	f("applied")
	f("in progress", service.Reload{Outcome: "applied", Nodes: node("in progress")})
	f("applied", service.Reload{Outcome: "in progress", Nodes: node("in progress")}, service.Reload{Outcome: "applied", Nodes: node("rebuilt")})
	f("partial", service.Reload{Outcome: "in progress", Nodes: node("in progress")}, service.Reload{Outcome: "partial", Nodes: node("refused")})
	h.records = []service.Reload{{Message: "reloaded a"}, {}, {Message: "cannot reload b"}}
	if status, body := get(t, c, "POST", base+"/-/reload"); status != 200 || body != "reloaded a\ncannot reload b" || h.canaries {
		t.Errorf("got %d %q, waits for canaries: %t", status, body, h.canaries)
	}
	h.records, h.reload = []service.Reload{{Outcome: "refused"}}, config.Diagnostics{{Msg: "nonsense"}}
	if status, body := get(t, c, "POST", base+"/-/reload", "Accept", "application/json"); status != 400 || !strings.Contains(body, `"outcome": "refused"`) {
		t.Errorf("got %d %s", status, body)
	}
}
