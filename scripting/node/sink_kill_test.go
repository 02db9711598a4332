package node_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

const killedSink = `
local weir = require "weir"
return weir.sink {
	args = { url = weir.arg.string {} },
	needs = { http = true },
	send = function(batch, ctx)
		local answer, err = ctx.http.post(ctx.args.url, batch:text())
		if not answer then return ctx.retry { reason = err } end
		if answer.status ~= 200 then return ctx.retry { reason = answer.body } end
	end,
}`

// realSink builds the sink of a storage directory as a process does.
func realSink(dir, url string) (component.Component, error) {
	cat, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New()}, UserDir: filepath.Join(dir, "scripts"), Modules: stdlib.Modules(),
	})
	if err != nil {
		return nil, err
	}
	r, _ := cat.Lookup("a.b")
	if r.Err != nil {
		return nil, r.Err
	}
	args := r.NewArgs()
	attrs := fmt.Sprintf("url = %q\nbatch { max_records = 40 }\nscript {\nlimits {\ntime = \"10s\"\nwait = \"1m\"\n}\nallow { http = [%q] }\n}", url, url)
	if err := registrytest.Evaluate(args, attrs, nil); err != nil {
		return nil, err
	}
	return r.Build(component.Options{
		ID: "a.b.default", Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), StoragePath: dir,
		UserAgent: "weir/test", Clock: clock.System{}, Stats: new(flow.Stats), Health: func(component.Health) {}, Export: func(any) {},
	}, args, nil)
}

// sinkForever is the process that TestSinkIsKilled kills: four sources send
// batches and print to stdout when they are accepted.
func sinkForever(dir, url string) {
	c, err := realSink(dir, url)
	if err == nil {
		go c.Run(context.Background())
		var wg sync.WaitGroup
		for src := range uint64(4) {
			wg.Go(func() {
				for i := 0; ; i++ {
					b, err := batch.ParseText(fmt.Sprintf("s%d{k=\"x\"} %d 1\ns%d{k=\"y\"} %d 1\n", src, i, src, i), batch.TextOptions{Source: src + 1})
					if err == nil {
						err = c.(flow.MetricsConsumer).ConsumeMetrics(context.Background(), b)
					}
					if err != nil {
						fmt.Println("error", err)
						os.Exit(1)
					}
					fmt.Printf("accepted %d %d\n", src, i)
				}
			})
		}
		wg.Wait()
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// TestSinkIsKilled kills a process whose sink sends at full speed, with and
// without an outage. Records that the process reported as accepted arrive after
// a restart, in the order of each series.
func TestSinkIsKilled(t *testing.T) {
	f := func(up bool) {
		t.Helper()
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "scripts", "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "scripts", "a", "b.lua"), []byte(killedSink), 0o600); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var posts []string
		came := make(chan struct{}, 1)
		status := http.StatusServiceUnavailable
		if up {
			status = http.StatusOK
		}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			w.WriteHeader(status)
			if status == http.StatusOK && err == nil {
				posts = append(posts, string(body))
			}
			select {
			case came <- struct{}{}:
			default:
			}
		}))
		defer srv.Close()
		url := srv.URL + "/write"

		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "WEIR_TEST_SINK_DIR="+dir, "WEIR_TEST_SINK_URL="+url)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		accepted := [4]int{-1, -1, -1, -1}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var src, i int
			if _, err := fmt.Sscanf(lines.Text(), "accepted %d %d", &src, &i); err != nil {
				if n < 600 {
					t.Errorf("the process said %q", lines.Text())
				}
				continue // cut off by the kill
			}
			accepted[src] = max(accepted[src], i)
			if n == 600 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		mu.Lock()
		before := len(posts)
		status = http.StatusOK
		mu.Unlock()

		c, err := realSink(dir, url)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		timeout := time.NewTimer(2 * time.Minute)
		defer timeout.Stop()
		for !arrived(&mu, &posts, accepted) {
			select {
			case <-came:
			case <-timeout.C:
				t.Fatal("not all that was accepted has arrived")
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// A series begins again at the restart, with what was sent and not noted
		// as done. Otherwise, and but for what is sent again, it goes on in order.
		for run, of := range [][]string{posts[:before], posts[before:]} {
			last := map[string]int{}
			for line := range strings.Lines(strings.Join(of, "")) {
				name, rest, _ := strings.Cut(line, " ")
				var v int
				if _, err := fmt.Sscanf(rest, "%d 1", &v); err != nil {
					t.Fatal(err)
				}
				if was, there := last[name]; there && v > was+1 {
					t.Fatalf("run %d: %s went from %d to %d", run, name, was, v)
				}
				last[name] = v
			}
		}
		t.Logf("accepted %v; %d requests before the kill, %d after", accepted, before, len(posts)-before)
	}
	f(false)
	f(true)
}

// arrived reports whether all that was accepted has.
func arrived(mu *sync.Mutex, posts *[]string, accepted [4]int) bool {
	mu.Lock()
	all := strings.Join(*posts, "")
	mu.Unlock()
	have := map[string]bool{}
	for line := range strings.Lines(all) {
		have[strings.TrimSpace(line)] = true
	}
	for src, last := range accepted {
		for i := range last + 1 {
			for _, k := range []string{"x", "y"} {
				if !have[fmt.Sprintf("s%d{k=%q} %d 1", src, k, i)] {
					return false
				}
			}
		}
	}
	return true
}
