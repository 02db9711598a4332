package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/process"
)

// start starts weir and waits for its page.
func (r *run) start(ctx context.Context) (err error) {
	// A busy machine must not make weir refuse a version whose test is long on purpose.
	if r.weir, err = process.Start(r.o.Weir, "run", "--server.http.listen-addr=127.0.0.1:0", "--storage.path="+r.data(), "--scripts.test-limit=1m",
		"--scripts="+filepath.Join(r.o.Dir, "scripts"), r.config()); err != nil {
		return err
	}
	return r.eventually(ctx, "weir prints the address of its web UI", func() error {
		if r.weir.URL() == "" {
			return fmt.Errorf("it printed %q", r.weir.OutputTail())
		}
		return nil
	})
}

// kill ends weir like a crash.
func (r *run) kill() {
	if r.weir == nil {
		return
	}
	r.weir.Kill()
	r.output = append(r.output, r.weir.Output())
}

// stop ends weir with SIGTERM. If dead is true, its endpoint is dead and the stop
// must not exceed a time limit.
func (r *run) stop(dead bool) (took time.Duration) {
	began := time.Now()
	_ = r.weir.Signal(syscall.SIGTERM)
	select {
	case <-r.weir.Done():
	case <-time.After(r.o.Patience):
		r.addFailure("weir did not stop within %s of SIGTERM; its last output:\n%s", r.o.Patience, r.weir.OutputTail())
	}
	took = time.Since(began)
	if dead && took > r.o.StopWithin {
		r.addFailure("SIGTERM took %s while the endpoint was dead, not %s at most", took.Round(time.Millisecond), r.o.StopWithin)
	}
	r.kill()
	if code := r.weir.ExitCode(); code != 0 {
		r.addFailure("weir ended with status %d after SIGTERM; its last output:\n%s", code, r.weir.OutputTail())
	}
	return took
}

// metric returns the sum of a metric of weir over the series with a reason, or
// over all series if reason is "".
func (r *run) metric(ctx context.Context, name, reason string) (float64, error) {
	families, err := r.weir.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return process.Sum(families, name, reason)
}

func (r *run) config() string { return filepath.Join(r.o.Dir, "config.alloy") }

// writeConfig writes the next variant of the config. The variants differ in how
// samples are sent, not in the samples.
func (r *run) writeConfig() error {
	v := r.variant
	r.variant++
	timeout, queue := "2s", fmt.Sprintf("max_samples_per_send = %d\n      min_shards = %d", []int{500, 2000, 700}[v%3], 8+v%2)
	if r.queue != "" {
		timeout, queue = "1m", r.queue // for the slow endpoint
	}
	var b strings.Builder
	b.WriteString("prometheus.scrape \"load\" {\n  targets = [\n")
	for _, a := range r.targets.Addresses() {
		fmt.Fprintf(&b, "    { __address__ = %q },\n", a)
	}
	fmt.Fprintf(&b, `  ]
  job_name        = "load"
  scrape_interval = "%[1]s"
  scrape_timeout  = "%[1]s"
  forward_to      = [faults.same.load.receiver]
}

faults.same "load" {
  forward_to = [prometheus.remote_write.sink.receiver]
  %[7]s
}

prometheus.remote_write "sink" {
  endpoint {
    name           = "sink"
    url            = "http://%[2]s/api/v1/write"
    remote_timeout = %[6]q
    headers        = { "X-Variant" = "%[3]d" }
    queue_config {
      %[4]s
      max_backoff = "300ms"
    }
  }
  journal {
    fsync = %[5]q
  }
}
`, r.o.Interval, r.sink.Address(), v, queue, []string{"none", "interval", "always"}[v%3], timeout, r.block)
	return replace(r.config(), b.String())
}

// replace replaces a file as editors do.
func replace(path, content string) error {
	if err := os.WriteFile(path+".new", []byte(content), 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
