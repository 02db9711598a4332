package remotewrite_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/grafana/alloy/syntax"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
)

const killedID = "prometheus.remote_write.test"

func killedConfig(url string) string {
	return endpoint(url, "name = \"killed\"\nqueue_config { max_samples_per_send = 25 }")
}

// sendForever is the process that TestKill kills. Four sources send batches, and
// the process prints a line when a batch is accepted.
func sendForever(dir, url string) {
	var a remotewrite.Arguments
	err := syntax.Unmarshal([]byte(killedConfig(url)), &a)
	if err == nil {
		var c *remotewrite.Component
		c, err = remotewrite.New(component.Options{
			ID: killedID, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
			StoragePath: dir, UserAgent: "weir/test", Clock: clock.System{}, Stats: new(flow.Stats),
			Health: func(component.Health) {},
		}, &a, nil)
		if err == nil {
			go c.Run(context.Background())
			var wg sync.WaitGroup
			for src := range uint64(4) {
				ss := gauges(src, 25, 0).Series
				wg.Go(func() {
					for i := int64(0); ; i++ {
						b := gauges(src, 25, t0+i)
						b.Series = ss
						if err := c.ConsumeMetrics(context.Background(), b); err != nil {
							fmt.Println("error", err)
							os.Exit(1)
						}
						fmt.Printf("accepted %d %d\n", src, i)
					}
				})
			}
			wg.Wait()
		}
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// TestKill kills a process that is sending at full speed, once with the endpoint
// down and once with it up. All batches that the process reported as accepted
// arrive after a restart.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	f := func(down bool) {
		t.Helper()
		srv := newServer(t)
		srv.mu.Lock()
		srv.unique = map[string]bool{}
		srv.mu.Unlock()
		if down {
			srv.answer(503)
		}
		home := componenttest.New(t, killedID)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WEIR_TEST_REMOTE_WRITE="+home.StoragePath, "WEIR_TEST_URL="+srv.URL)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var accepted [4]int64
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var src, i int64
			if _, err := fmt.Sscanf(lines.Text(), "accepted %d %d", &src, &i); err != nil {
				if strings.HasPrefix(lines.Text(), "error") {
					t.Fatal(lines.Text())
				}
				continue // truncated line
			}
			accepted[src] = i + 1
			if n == 1000 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // the process was killed
		srv.heal()
		before := srv.sent()
		came := len(srv.received())
		start(t, home, clock.System{}, killedConfig(srv.URL))
		var want []*batch.Metrics
		for src, n := range accepted {
			for i := range n {
				want = append(want, gauges(uint64(src), 25, t0+i))
			}
		}
		missing := func() (n int) {
			have := map[string]bool{}
			for _, r := range srv.samples(t) {
				have[r] = true
			}
			for _, r := range rows(want...) {
				if !have[r] {
					n++
				}
			}
			return n
		}
		samples := len(rows(want...))
		srv.wait(t, func() bool {
			srv.mu.Lock()
			n := len(srv.unique)
			srv.mu.Unlock()
			return n >= samples && missing() == 0
		})
		// Repeated samples have the same series, timestamp and value, although
		// the requests may be divided differently.
		values := map[string]float64{}
		again := 0
		for i, r := range srv.received() {
			for _, ts := range r.message.Timeseries {
				for _, s := range ts.Samples {
					k := fmt.Sprint(ts.Labels, s.Timestamp)
					v, ok := values[k]
					if ok && v != s.Value {
						t.Fatalf("%s came with %v and with %v", k, v, s.Value)
					}
					if ok && i >= came {
						again++
					}
					values[k] = s.Value
				}
			}
		}
		t.Logf("accepted %v batches; %d samples before the restart, %d after, %d again", accepted, before, srv.sent()-before, again)
	}
	f(true)
	f(false)
}
