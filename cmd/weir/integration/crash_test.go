//go:build integration

package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// link is a TCP proxy in front of a server. It can be cut like a network.
type link struct {
	addr, to string

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

func startLink(t *testing.T, to string) *link {
	k := &link{to: strings.TrimPrefix(to, "http://"), addr: fmt.Sprint("127.0.0.1:", freePort(t)), conns: map[net.Conn]bool{}}
	k.up(t)
	t.Cleanup(k.cut)
	return k
}

func (k *link) up(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", k.addr)
	if err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	k.l = l
	k.mu.Unlock()
	k.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", k.to)
			if err != nil {
				c.Close()
				continue
			}
			k.mu.Lock()
			k.conns[c], k.conns[s] = true, true
			k.mu.Unlock()
			k.wg.Go(func() { io.Copy(s, c); s.Close(); c.Close() })
			k.wg.Go(func() { io.Copy(c, s); s.Close(); c.Close() })
		}
	})
}

// cut refuses new connections and resets existing ones.
func (k *link) cut() {
	k.mu.Lock()
	k.l.Close()
	for c := range k.conns {
		c.Close()
	}
	clear(k.conns)
	k.mu.Unlock()
	k.wg.Wait()
}

// moves redirects the link to another server.
func (k *link) moves(t *testing.T, to string) {
	t.Helper()
	k.cut()
	k.to = strings.TrimPrefix(to, "http://")
	k.up(t)
}

// accepted returns the number of samples that weir's sink has accepted.
func accepted(t *testing.T, weir *weirRun) float64 {
	t.Helper()
	return counter(t, metricsPage(t, weir), "weir_component_samples_in_total", "")
}

func TestKillWhileTheEndpointIsDown(t *testing.T) {
	t.Parallel()
	const targets = 10
	target := startLoad(t, 1000)
	prometheus := startPrometheus(t, "")
	wire := startLink(t, prometheus)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"),
		target.scrapeBlock(targets, "500ms", "prometheus.remote_write.out.receiver")+remoteWrite("http://"+wire.addr, ""))
	weir := startWeir(t, dir)
	eventually(t, "samples flow", func() error {
		n, err := number(prometheus, "count(load_total)", time.Time{})
		if err == nil && n != targets*1000 {
			return fmt.Errorf("%v series", n)
		}
		return err
	})

	wire.cut()
	down := time.Now()
	target.scrapedAfter(t, targets, down.Add(30*time.Second))
	before := accepted(t, weir)
	weir.kill()
	served := make([]int, targets)
	for i := range served {
		served[i] = target.served(i)
	}
	if before < 15*targets*1000 {
		t.Errorf("only %v samples were accepted in 10 s of outage", before)
	}

	again := startWeir(t, dir)
	target.scrapedAfter(t, targets, time.Now())
	wire.up(t)
	eventually(t, "the backlog and new samples arrive", func() error {
		n, err := number(prometheus, fmt.Sprintf(`min(max_over_time(load_total{i="0"}[1m])) > %d`, served[0]+4), time.Time{})
		if err == nil && n == 0 {
			return fmt.Errorf("not yet")
		}
		return err
	})
	target.scrapedAfter(t, targets, time.Now())
	if code := again.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}

	var total float64 // samples of the first run that arrived
	for i := range targets {
		failed := unheard(t, prometheus, weir.output()+again.output(), fmt.Sprintf(`target="%d"`, i), i)
		for _, s := range mustQuery(t, prometheus, fmt.Sprintf(`{target="%d"}[30m]`, i), time.Time{}) {
			if s.Metric["__name__"] != "load_total" {
				continue
			}
			// The only scrape that may be missing is the last one of the first
			// run, if it was not accepted before the kill, and scrapes that weir
			// reports as failed.
			last, missing := 0, 0
			for _, n := range s.sequence(t) {
				if n <= last {
					t.Errorf("%s: %d comes after %d", s.key(), n, last)
				}
				for last++; last < n; last++ {
					if last != served[i] {
						missing++
					}
				}
			}
			if missing > failed {
				t.Errorf("%s: %d scrapes are missing (%d served before the kill), weir says %d failed: %v", s.key(), missing, served[i], failed, s.sequence(t))
			}
			for _, n := range s.sequence(t) {
				if n <= served[i] {
					total++
				}
			}
		}
	}
	// before is the number of accepted samples of load_total, load_flag and the
	// report series; nearly all of them are load_total.
	perScrape := 1000.0 + 1 + 5
	if want := before / perScrape * 1000; total < want {
		t.Errorf("%v samples of load_total arrived from before the kill, %v were accepted", total, want)
	}
}

// TestSlowEndpoint checks that a slow endpoint does not delay the other
// endpoints.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	slow := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go slow.Serve(l)
	t.Cleanup(func() { slow.Close() })

	target := startLoad(t, 100)
	prometheus := startPrometheus(t, "")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), target.scrapeBlock(2, "500ms", "prometheus.remote_write.out.receiver")+
		remoteWrite(prometheus, fmt.Sprintf("endpoint {\n    name = \"slow\"\n    url  = \"http://%s/write\"\n  }", l.Addr())))
	weir := startWeir(t, dir)
	eventually(t, "20 scrapes arrive at the quick endpoint", func() error {
		n, err := number(prometheus, `min(max_over_time(load_total[1m]))`, time.Time{})
		if err == nil && n < 20 {
			return fmt.Errorf("%v", n)
		}
		return err
	})
	for i := range 2 {
		ss := mustQuery(t, prometheus, fmt.Sprintf(`load_total{i="0",target="%d"}[5m]`, i), time.Time{})
		ss[0].checkScrapes(t, unheard(t, prometheus, weir.output(), fmt.Sprintf(`target="%d"`, i), i))
	}
	// The hung request delays the stop, so that a second signal arrives in time.
	weir.cmd.Process.Signal(syscall.SIGTERM) // as timeout(1) does: twice at once
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
