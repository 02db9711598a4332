package http_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// liveHost has nodes that change, and counts how often they are listed.
type liveHost struct {
	host
	mu     sync.Mutex
	listed int
}

func (h *liveHost) ListComponents() []service.Info {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed++
	return slices.Clone(h.infos)
}

func (h *liveHost) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *liveHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listed
}

// liveServer serves a host in a bubble of synctest, over connections in memory.
func liveServer(h *liveHost) (connect func() net.Conn, stop func()) {
	s := http.New(http.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx, h) }()
	l := pipes{make(chan net.Conn)}
	srv := &nethttp.Server{Handler: s.Handler()}
	served := make(chan error)
	go func() { served <- srv.Serve(l) }()
	synctest.Wait() // the service answers for its host
	connect = func() net.Conn {
		client, server := net.Pipe()
		l.conns <- server
		io.WriteString(client, "GET /api/v0/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return client
	}
	return connect, func() {
		cancel()
		<-done
		close(l.conns)
		<-served
	}
}

// liveEvents reads the events of a response.
func liveEvents(t *testing.T, c net.Conn) (next func() string) {
	t.Helper()
	res, err := nethttp.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	return func() string {
		name := ""
		for lines.Scan() {
			if n, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = n
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			if name == "reload" || name == "step" {
				return name
			}
			var s struct {
				Nodes []struct {
					ID, State, Message string
					Waiting            int64
				}
				Removed []string
			}
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				return err.Error()
			}
			text := name
			for _, n := range s.Nodes {
				text += fmt.Sprintf(" %s:%s:%s:%d", n.ID, n.State, n.Message, n.Waiting)
			}
			if len(s.Removed) > 0 {
				text += fmt.Sprint(" removed ", s.Removed)
			}
			return text
		}
		return "end"
	}
}

// TestLive: a client gets the whole state, and then the changes at most twice a second.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		h := &liveHost{host: host{events: j.after}}
		node := func(id string) service.Info {
			return service.Info{ID: id, Stats: new(flow.Stats), Health: component.Health{State: component.Healthy}}
		}
		h.infos = []service.Info{node("a"), node("b")}
		h.overview.Services = []service.Info{{ID: "http", Health: component.Health{State: component.Healthy}}}
		connect, stop := liveServer(h)
		time.Sleep(time.Minute) // of the bubble
		if n := h.count(); n != 0 {
			t.Errorf("the state was computed %d times without clients", n)
		}
		c := connect()
		next := liveEvents(t, c)
		want := func(next func() string, want string) {
			t.Helper()
			if got := next(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		want(next, "status a:healthy::0 b:healthy::0 http:healthy::0")
		began := time.Now()
		for n := range 5 {
			h.change(func() { h.infos[1].Health.State, h.infos[1].Health.Message = component.Unhealthy, fmt.Sprint(n) })
			want(next, fmt.Sprintf("change b:unhealthy:%d:0", n))
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("5 changes took %s, want at most 2 in a second", took)
		}
		h.change(func() { h.infos[0].Backlog.Samples = 7 })
		want(next, "change a:healthy::7")
		j.add(service.ReloadEvent{Reload: &service.Reload{ID: 7}})
		want(next, "reload")
		h.change(func() { h.infos = h.infos[1:] })
		want(next, "change removed [a]")

		// Others join; the state is computed once for all of them.
		more := []func() string{next}
		for range 9 {
			c := connect()
			defer c.Close()
			n := liveEvents(t, c)
			want(n, "status b:unhealthy:4:0 http:healthy::0")
			more = append(more, n)
		}
		before := h.count()
		h.change(func() { h.infos[0].Health.Message = "for all" })
		for _, n := range more {
			want(n, "change b:unhealthy:for all:0")
		}
		if n := h.count() - before; n > 2 {
			t.Errorf("the state was computed %d times for one change", n)
		}
		// A client that goes is forgotten.
		c.Close()
		time.Sleep(time.Minute) // of the bubble; the others do not read, and are disconnected
		synctest.Wait()
		before = h.count()
		time.Sleep(time.Minute)
		if n := h.count() - before; n != 0 {
			t.Errorf("the state was computed %d times after all clients had gone", n)
		}
		stop()
	})
}

// TestLiveRates: a rate is sent again when it has changed by more than 2 % of what was sent.
func TestLiveRates(t *testing.T) {
	f := func(sent, now, want float64) {
		t.Helper()
		if got := http.Steady(sent, now); got != want {
			t.Errorf("from %v to %v: got %v, want %v", sent, now, got, want)
		}
	}
	f(100, 100, 100)
	f(100, 102, 100)
	f(100, 98, 100)
	f(100, 103, 103)
	f(100, 97, 97)
	f(100, 0, 0)
	f(0, 0.01, 0.01)
	f(0, 0, 0)
}

// TestLiveSlow: a client that does not keep up skips updates, and gets the whole state instead.
func TestLiveSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &liveHost{}
		h.infos = []service.Info{{ID: "a", Health: component.Health{State: component.Healthy}}, {ID: "b", Health: component.Health{State: component.Healthy}}}
		connect, stop := liveServer(h)
		conns := []net.Conn{connect(), connect()}
		defer conns[0].Close()
		defer conns[1].Close()
		slow, fast := liveEvents(t, conns[0]), liveEvents(t, conns[1])
		slow()
		fast()
		change := func(n int) {
			h.change(func() { h.infos[0].Health.Message = fmt.Sprint(n) })
			if got, want := fast(), fmt.Sprintf("change a:healthy:%d:0", n); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		for n := range 12 {
			change(n)
		}
		// One event was on its way, and eight waited when there was no room for the next.
		for _, want := range []string{"change a:healthy:0:0", "status a:healthy:9:0 b:healthy::0", "change a:healthy:10:0", "change a:healthy:11:0"} {
			if got := slow(); got != want {
				t.Errorf("the slow client got %q, want %q", got, want)
			}
		}
		change(12)
		if got, want := slow(), "change a:healthy:12:0"; got != want {
			t.Errorf("the slow client got %q, want %q", got, want)
		}
		stop()
	})
}

// TestLiveLimits: the number of clients is limited, one that does not read is
// disconnected and does not delay the others, and all end with weir.
func TestLiveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &liveHost{}
		h.infos = []service.Info{{ID: "a", Stats: new(flow.Stats), Health: component.Health{State: component.Healthy}}}
		connect, stop := liveServer(h)
		slow := connect()
		next := liveEvents(t, connect())
		next()
		for range 98 {
			c := connect()
			defer c.Close()
			liveEvents(t, c)()
		}
		c := connect()
		res, err := nethttp.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, res.ContentLength))
		if res.StatusCode != 503 || string(text) != "100 clients follow the status already, or weir stops\n" {
			t.Errorf("got %d %s", res.StatusCode, text)
		}
		c.Close()
		for n := range 30 {
			h.change(func() { h.infos[0].Health.Message, h.infos[0].Health.State = fmt.Sprint(n), component.Unhealthy })
			if got, want := next(), fmt.Sprintf("change a:unhealthy:%d:0", n); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		time.Sleep(11 * time.Second) // of the bubble
		if text, err := io.ReadAll(slow); err != nil || len(text) > 0 {
			t.Errorf("the client that does not read got %d bytes and %v, want that it was disconnected", len(text), err)
		}
		stop()
		if got := next(); got != "end" {
			t.Errorf("got %q after the end", got)
		}
	})
}
