package write_test

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
	"github.com/weir-run/weir/natives/loki/write"
)

func killedConfig(url string) string { return endpoint(url, `name = "killed"`) }

// killedBatch returns the i-th batch of a source.
func killedBatch(source uint64, s *batch.Stream, i int64) *batch.Logs {
	return long(lines(source, s, 20, t0+i*100))
}

func killedStream(source uint64) *batch.Stream { return stream("source", fmt.Sprint(source)) }

// sendForever is the process that TestKill kills. Four sources send batches, and
// the process prints a line when a batch is accepted.
func sendForever(dir, url string) {
	var a write.Arguments
	err := syntax.Unmarshal([]byte(killedConfig(url)), &a)
	if err == nil {
		var c *write.Component
		c, err = write.New(component.Options{
			ID: id, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
			StoragePath: dir, UserAgent: "weir/test", Clock: clock.System{}, Stats: new(flow.Stats),
			Health: func(component.Health) {},
		}, &a, nil)
		if err == nil {
			go c.Run(context.Background())
			var wg sync.WaitGroup
			for src := range uint64(4) {
				s := killedStream(src)
				wg.Go(func() {
					for i := int64(0); ; i++ {
						if err := c.ConsumeLogs(context.Background(), killedBatch(src, s, i)); err != nil {
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
// arrive after a restart, with unchanged times.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	f := func(down bool) {
		t.Helper()
		srv := newServer(t)
		if down {
			srv.answer(503, "down")
		}
		home := componenttest.New(t, id)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WEIR_TEST_LOKI_WRITE="+home.StoragePath, "WEIR_TEST_URL="+srv.URL)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var accepted [4]int64
		text := bufio.NewScanner(out)
		for n := 0; text.Scan(); n++ {
			var src, i int64
			if _, err := fmt.Sscanf(text.Text(), "accepted %d %d", &src, &i); err != nil {
				if strings.HasPrefix(text.Text(), "error") {
					t.Fatal(text.Text())
				}
				continue // truncated line
			}
			accepted[src] = i + 1
			if n == 300 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // the process was killed
		srv.heal()
		before := srv.count()
		start(t, home, clock.System{}, killedConfig(srv.URL))
		var want []string
		for src, n := range accepted {
			s := killedStream(uint64(src))
			for i := range n {
				want = append(want, rows(killedBatch(uint64(src), s, i))...)
			}
		}
		srv.wait(t, func() bool {
			srv.mu.Lock()
			defer srv.mu.Unlock()
			if len(srv.unique) < len(want) {
				return false
			}
			for _, r := range want {
				if !srv.unique[r] {
					return false
				}
			}
			return true
		})
		t.Logf("accepted %v batches; %d lines before the restart, %d after", accepted, before, srv.count()-before)
	}
	f(true)
	f(false)
}
