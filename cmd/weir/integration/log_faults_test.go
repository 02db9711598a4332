//go:build integration

package integration

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// dead is an endpoint that never responds.
func dead(_ int, w http.ResponseWriter, _ *http.Request) bool { return cut(w) }

// TestLogFaultyEndpoint: an endpoint responds with 429, with 500, not at all,
// with half a response, and late, in turn. Every line arrives in order.
func TestLogFaultyEndpoint(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 8, Seed: 4})
	endpoint := startPushRecorder(t)
	endpoint.set(faulty)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+
		lokiWrite(endpoint.endpoint(`remote_timeout = "1s"`, `batch_size = "64KiB"`, `batch_wait = "50ms"`)))
	weir := startWeir(t, dir)
	l.flow(40)
	eventually(t, "60 requests came", func() error {
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		if endpoint.requests < 60 {
			return fmt.Errorf("%d", endpoint.requests)
		}
		return nil
	})
	for file := range l.files {
		l.rotate(file, logfiles.Rename, 10)
	}
	l.pause()
	endpoint.whole(t, l)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestLogKills kills weir with SIGKILL repeatedly while files are written and
// renamed, with the endpoint up, dead and faulty. Every line arrives, in order;
// duplicates have the same time and text.
func TestLogKills(t *testing.T) {
	t.Parallel()
	const kills = 9
	l := startLines(t, logfiles.Options{Files: 8, JSON: true, Seed: 5})
	endpoint := startPushRecorder(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+
		lokiWrite(endpoint.endpoint(`remote_timeout = "1s"`)))
	l.flow(40)
	for k := range kills {
		endpoint.set([]func(int, http.ResponseWriter, *http.Request) bool{nil, dead, faulty}[k%3])
		weir := startWeir(t, dir)
		eventually(t, "lines are read", func() error {
			if got := counterOf(t, metricsPage(t, weir), lokiSourceID, "weir_component_lines_out_total", ""); got < float64(500*k) {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
		weir.kill()
		l.rotate(k%l.files, logfiles.Rename, 20)
	}
	endpoint.set(nil)
	l.pause()
	weir := startWeir(t, dir)
	endpoint.whole(t, l)
	t.Logf("%d lines arrived in %d requests, %d came twice", endpoint.count(), endpoint.requests, endpoint.again)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestLogKillWhileLokiIsDown stops a real Loki, kills weir with SIGKILL and
// starts both. It repeats this with SIGTERM, which must not take long. Loki has
// every line exactly once.
func TestLogKillWhileLokiIsDown(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 6, Seed: 6})
	loki := startLoki(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+lokiWrite(loki.endpoint()))
	weir := startWeir(t, dir)
	l.flow(30)
	loki.arrive(t, `{job="load"}`, 1000)

	loki.down(t)
	from := l.written()
	eventually(t, "more is written", func() error { return l.atLeast(from + 5000) })
	weir.kill()
	l.rotate(0, logfiles.Rename, 10)
	weir = startWeir(t, dir)
	eventually(t, "more is written", func() error { return l.atLeast(from + 10000) })
	weir.kill()
	weir = startWeir(t, dir)
	loki.up(t)
	loki.arrive(t, `{job="load"}`, from+6000)

	loki.down(t)
	from = l.written()
	eventually(t, "more is written", func() error { return l.atLeast(from + 5000) })
	stopsSoon(t, weir)
	l.rotate(1, logfiles.Rename, 10)
	l.pause()
	loki.up(t)
	weir = startWeir(t, dir)
	l.whole(loki, `{job="load"}`)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// stopsSoon sends SIGTERM. weir guarantees to exit within 5 s, also during an
// outage; a busy machine gets more time.
func stopsSoon(t *testing.T, weir *weirRun) {
	t.Helper()
	began := time.Now()
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	took := time.Since(began)
	t.Logf("SIGTERM took %s", took)
	if took > 20*time.Second {
		t.Errorf("SIGTERM took %s, want at most 5s on an idle machine", took)
	}
}

// TestLogFanOut: there are two loki.write nodes, one with two endpoints, and only
// one endpoint works. It receives every line immediately; the others receive the
// lines when they work again.
func TestLogFanOut(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 4, Seed: 7})
	alive, slow, gone := startPushRecorder(t), startPushRecorder(t), startPushRecorder(t)
	slow.set(func(_ int, w http.ResponseWriter, r *http.Request) bool { // hangs
		io.Copy(io.Discard, r.Body) // otherwise, the server does not notice that the client disconnected
		<-r.Context().Done()
		return true
	})
	gone.set(dead)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.gone.receiver, loki.write.out.receiver")+
		lokiWrite(alive.endpoint(), slow.endpoint(`name = "slow"`, `remote_timeout = "2s"`))+
		"\nloki.write \"gone\" {\n"+gone.endpoint()+"}\n")
	weir := startWeir(t, dir)
	for range 20 {
		l.add(200)
		alive.whole(t, l)
	}
	if slow.count()+gone.count() != 0 {
		t.Error("the dead took lines")
	}
	slow.set(nil)
	gone.set(nil)
	slow.whole(t, l)
	gone.whole(t, l)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
