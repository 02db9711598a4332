package faults

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// weir is a process.
type weir struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it is gone
	err  error         // then, how
	url  string        // of its page

	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes the process's output.
func (w *weir) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

func (w *weir) output() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.String()
}

func (w *weir) outputTail() string {
	s := w.output()
	return s[max(0, len(s)-3000):]
}

// exitError returns an error when the process has ended.
func (w *weir) exitError() error {
	select {
	case <-w.done:
		return fmt.Errorf("weir ended (%v); its last output:\n%s", w.err, w.outputTail())
	default:
		return nil
	}
}

var pageLine = regexp.MustCompile(`page:? +(https?://127\.0\.0\.1:\d+)`)

// start starts weir and waits for its page.
func (r *run) start(ctx context.Context) error {
	w := &weir{done: make(chan struct{})}
	w.cmd = exec.Command(r.o.Weir, "run", "--server.http.listen-addr=127.0.0.1:0", "--storage.path="+r.data(),
		"--scripts="+filepath.Join(r.o.Dir, "scripts"), r.config())
	w.cmd.Stdout, w.cmd.Stderr = w, w
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start weir: %w", err)
	}
	go func() {
		w.err = w.cmd.Wait()
		close(w.done)
	}()
	r.weir = w
	return r.eventually(ctx, "weir says where its page is", func() error {
		m := pageLine.FindStringSubmatch(w.output())
		if m == nil {
			return fmt.Errorf("it printed %q", w.outputTail())
		}
		w.url = m[1]
		return nil
	})
}

// kill ends weir as a crash does.
func (r *run) kill() {
	if r.weir == nil {
		return
	}
	_ = r.weir.cmd.Process.Kill() // it may be gone
	<-r.weir.done
	r.output = append(r.output, r.weir.output())
}

// stop ends weir by SIGTERM; dead says that its endpoint is, so that there is
// a time within which it must end.
func (r *run) stop(dead bool) (took time.Duration) {
	began := time.Now()
	_ = r.weir.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.weir.done:
	case <-time.After(r.o.Patience):
		r.addFailure("weir did not stop within %s of SIGTERM; its last output:\n%s", r.o.Patience, r.weir.outputTail())
	}
	took = time.Since(began)
	if dead && took > r.o.StopWithin {
		r.addFailure("SIGTERM took %s while the endpoint was dead, not %s at most", took.Round(time.Millisecond), r.o.StopWithin)
	}
	r.kill()
	if code := r.weir.cmd.ProcessState.ExitCode(); code != 0 {
		r.addFailure("weir ended with status %d after SIGTERM; its last output:\n%s", code, r.weir.outputTail())
	}
	return took
}

// metric returns the sum of a metric of the sink; a reason leaves out series
// with another one.
func (w *weir) metric(name, reason string) (sum float64, err error) {
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Get(w.url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	p := expfmt.NewTextParser(model.UTF8Validation)
	fams, err := p.TextToMetricFamilies(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("cannot read weir's metrics: %w", err)
	}
	found := false
	for _, m := range fams[name].GetMetric() {
		if reason == "" || slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == "reason" && l.GetValue() == reason }) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			found = true
		}
	}
	if !found {
		return 0, fmt.Errorf("weir has no metric %s with reason %q yet", name, reason)
	}
	return sum, nil
}

func (r *run) config() string { return filepath.Join(r.o.Dir, "config.alloy") }

// writeConfig writes the next variant: what changes is how samples are sent,
// never what they are.
func (r *run) writeConfig() error {
	v := r.variant
	r.variant++
	timeout, queue := "2s", fmt.Sprintf("max_samples_per_send = %d\n      min_shards = %d", []int{500, 2000, 700}[v%3], 8+v%2)
	if r.queue != "" {
		timeout, queue = "1m", r.queue // the endpoint is slow
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
`, r.o.Interval, r.sink.Address(), v, queue, []string{"none", "interval", "always"}[v%3], timeout)
	return replace(r.config(), b.String())
}

// writeScript writes the next version of the script on the way.
func (r *run) writeScript() error {
	dir := filepath.Join(r.o.Dir, "scripts", "faults")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot make the scripts' directory: %w", err)
	}
	r.variant++
	return replace(filepath.Join(dir, "same.lua"), fmt.Sprintf(`local weir = require "weir"
-- version %d
return weir.transform { series = function(s) if s.labels.code == "no" then s.labels.code = "yes" end end }
`, r.variant))
}

// replace writes a file as editors do.
func replace(path, content string) error {
	if err := os.WriteFile(path+".new", []byte(content), 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
