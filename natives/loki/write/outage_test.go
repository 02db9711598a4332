package write_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/write"
)

// naps is a clock that reports the timers of retries, which it recognises by
// their duration.
type naps struct {
	*clocktest.Fake
	long  time.Duration
	begun chan time.Duration
}

func (c naps) NewTimer(d time.Duration) clock.Timer {
	t := c.Fake.NewTimer(d)
	if d >= c.long*9/10 && d <= c.long*11/10 {
		c.begun <- d
	}
	return t
}

// TestRetryAfter: the delay in Retry-After is observed.
func TestRetryAfter(t *testing.T) {
	srv := newServer(t)
	srv.setFault(func(w http.ResponseWriter, _ request, n int) bool {
		if n > 1 {
			return false
		}
		w.Header().Set("Retry-After", "300")
		w.WriteHeader(429)
		return true
	})
	c := naps{clocktest.New(time.Unix(0, t0)), 300 * time.Second, make(chan time.Duration, 10)}
	n := start(t, componenttest.New(t, id), c, endpoint(srv.URL, ""))
	n.accept(t, long(lines(1, stream("s", "a"), 3, t0)))
	if d := <-c.begun; d < 300*time.Second {
		t.Errorf("it waits for %s", d)
	}
	c.Advance(400 * time.Second)
	srv.wait(t, func() bool { return srv.count() == 3 })
}

// TestHealth: the health shows that an endpoint is unreachable or refuses
// everything, and when it has recovered.
func TestHealth(t *testing.T) {
	srv := newServer(t)
	srv.answer(503, "out of order")
	n := startNew(t, endpoint(srv.URL, ""))
	c := clocktest.New(time.Unix(0, t0))
	n.stop()
	n.Registry = prometheus.NewRegistry()
	n = start(t, n.Node, c, endpoint(srv.URL, `name = "here"`)+`journal { max_age = "100000h" }`)
	n.accept(t, long(lines(1, stream("s", "a"), 3, t0)))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { // advances the clock while a timer is set, at a pace at which requests can follow
		pace := time.NewTicker(100 * time.Microsecond)
		defer pace.Stop()
		for ctx.Err() == nil && c.WaitTimers(ctx, 1) == nil {
			<-pace.C
			c.Advance(20 * time.Millisecond)
		}
	})
	defer wg.Wait()
	defer cancel()
	n.Wait(t, func() bool {
		h := n.Health()
		return h.State == component.Unhealthy && strings.Contains(h.Message, "endpoint here has accepted nothing since 2025-01-01T0") &&
			strings.Contains(h.Message, "503 Service Unavailable: out of order")
	})
	srv.answer(400, "no such thing")
	n.Wait(t, func() bool { return strings.Contains(n.Health().Message, "endpoint here rejects lines") })
	srv.heal()
	done := make(chan error, 1)
	go func() { done <- n.c.ConsumeLogs(t.Context(), long(lines(1, stream("s", "a"), 3, t0))) }()
	n.Wait(t, func() bool { return n.Health().State == component.Healthy })
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"cannot send; lines wait in the journal", "the endpoint rejects lines; they are dropped and counted"} {
		if strings.Count(n.Logs(), want) != 1 {
			t.Errorf("%q is not in the log once:\n%s", want, n.Logs())
		}
	}
}

// TestFullJournalDrops: if the journal is full, new lines are dropped and
// counted, or the oldest ones if configured.
func TestFullJournalDrops(t *testing.T) {
	f := func(more, journal, reason string) {
		t.Helper()
		srv := newServer(t)
		srv.answer(503, "down")
		n := startNew(t, endpoint(srv.URL, more)+"journal {\n max_size = \"1MiB\"\n"+journal+"\n}")
		for range 200 { // more than 20 KiB each after compression
			n.accept(t, corpus(1, 1, 64<<10))
		}
		if n.metric(t, "weir_loki_write_lines_dropped_total", reason) == 0 {
			t.Errorf("nothing was dropped for %s", reason)
		}
		if size := n.metric(t, "weir_journal_size_bytes", ""); size > 2<<20 {
			t.Errorf("the journal has %v bytes", size)
		}
	}
	f("queue_config { block_on_overflow = false }", "", "overflow")
	f("", `on_full = "drop_oldest"`, "max_size")
}

// TestFullJournalBlocks: sources wait for space within their ctx, and continue
// when there is some.
func TestFullJournalBlocks(t *testing.T) {
	srv := newServer(t)
	srv.answer(503, "down")
	n := startNew(t, endpoint(srv.URL, "")+"journal { max_size = \"1MiB\" }")
	ctx, cancel := context.WithCancel(t.Context())
	want, i := 0, uint64(0)
	for ; n.metric(t, "weir_journal_size_bytes", "") < 1<<20; i++ {
		b := corpus(1, 1, 64<<10)
		for k := range b.T {
			b.T[k] += int64(i) * 1000
		}
		n.accept(t, b)
		want += b.Len()
	}
	late := corpus(1, 1, 64<<10)
	for k := range late.T {
		late.T[k] -= 1e9
	}
	refused := make(chan error, 1)
	go func() { refused <- n.c.ConsumeLogs(ctx, late) }()
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "is full") {
		t.Errorf("got %v", err)
	}
	taken := make(chan error, 1)
	go func() { taken <- n.c.ConsumeLogs(t.Context(), late) }()
	srv.heal()
	if err := <-taken; err != nil {
		t.Error(err)
	}
	srv.wait(t, func() bool { return srv.count() == want+late.Len() })
}

// TestUnknownBlocks: blocks of another version of weir are lost, counted and
// logged; everything else is sent.
func TestUnknownBlocks(t *testing.T) {
	home := componenttest.New(t, id)
	j, err := journal.Claim(t.Context(), outbox.Root(home.StoragePath), journal.Options{
		Shards: 28, Clock: clock.System{}, Logger: home.Options().Logger, Owner: journal.Owner{Endpoint: "x", URL: "http://old/", Node: id},
	})
	if err != nil {
		t.Fatal(err)
	}
	good := write.Encode(lines(1, stream("s", "a"), 3, t0))[0]
	err = j.Append(good,
		journal.Block{Kind: 99, Samples: 7, Payload: []byte("x")},
		journal.Block{Kind: 1, Samples: 5, Payload: []byte{200}}, good)
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(t)
	n := start(t, home, clock.System{}, endpoint(srv.URL, `name = "x"`))
	srv.wait(t, func() bool { return len(srv.rows()) == 6 })
	n.stop()
	diff(t, map[string]uint64{"unknown_kind": 12}, n.Stats.DroppedLines())
	if strings.Count(n.Logs(), "a block of the journal cannot be sent; it is lost") != 2 {
		t.Error(n.Logs())
	}
}

// TestManyFiles: small batches of many sources need few writes and few requests.
func TestManyFiles(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, `batch_wait = "200ms"`))
	var wg sync.WaitGroup
	for source := range uint64(1000) {
		wg.Go(func() {
			if err := n.c.ConsumeLogs(t.Context(), lines(source, stream("file", fmt.Sprint(source)), 2, t0)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	srv.wait(t, func() bool { return srv.count() == 2000 })
	if k := len(srv.received()); k >= 1000 {
		t.Errorf("1000 small batches came in %d requests", k)
	}
}

func TestDebugInfo(t *testing.T) {
	srv := newServer(t)
	srv.answer(500, "down")
	n := startNew(t, endpoint(strings.Replace(srv.URL, "http://", "http://u:secret@", 1), ""))
	n.accept(t, lines(1, stream("s", "a"), 3, t0))
	srv.wait(t, func() bool { return len(srv.received()) > 1 })
	text, err := json.Marshal(n.c.DebugInfo())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"shards":8`, `"pending_lines":3`, `"pending_blocks":1`, "500 Internal Server Error: down"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("it tells the password: %s", text)
	}
}

// TestFallsOff: lines older than max_age are dropped and counted, and their shard
// does not wait any more.
func TestFallsOff(t *testing.T) {
	srv := newServer(t)
	srv.answer(503, "down")
	c := naps{clocktest.New(time.Unix(0, t0)), 10 * time.Hour, make(chan time.Duration, 10)}
	n := start(t, componenttest.New(t, id), c, endpoint(srv.URL, "min_backoff_period = \"10h\"\nmax_backoff_period = \"10h\"")+`journal { max_age = "30m" }`)
	n.accept(t, long(lines(1, stream("s", "a"), 3, t0)))
	<-c.begun
	c.Advance(20 * time.Hour)
	n.Wait(t, func() bool {
		return n.Health().State == component.Healthy && n.metric(t, "weir_loki_write_lines_dropped_total", "max_age") == 3
	})
	srv.heal()
	n.accept(t, long(lines(1, stream("s", "a"), 3, t0+100)))
	srv.wait(t, func() bool { return srv.count() == 3 })
}

// TestStopWhileServerHangs: a stop ends after drain_timeout, whatever the server
// does. Lines that were not accepted are sent after the next start.
func TestStopWhileServerHangs(t *testing.T) {
	srv := newServer(t)
	hold := make(chan bool)
	came := make(chan bool, 10)
	srv.setFault(func(_ http.ResponseWriter, r request, _ int) bool {
		came <- true
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		return true
	})
	text := func(more string) string { return endpoint(srv.URL, "remote_timeout = \"10m\"\n"+more) }
	n := startNew(t, text("queue_config { drain_timeout = \"50ms\" }"))
	b := lines(1, stream("s", "a"), 3, t0)
	n.accept(t, b)
	<-came
	n.stop()
	close(hold)
	srv.heal()
	n.Registry = prometheus.NewRegistry()
	start(t, n.Node, clock.System{}, text(""))
	srv.wait(t, func() bool { return srv.count() == 3 })
	diff(t, rows(b), srv.rows())
}
