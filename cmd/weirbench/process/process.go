// Package process runs weir as a process and reads what the process reports about itself.
// It changes nothing in weir: it uses the command line, the output and /metrics.
//
// A Process that was started must be ended with Kill, also after it has ended by itself.
package process

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Process is a running weir. Its methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // the result of the process, valid once done is closed

	mu  sync.Mutex
	out bytes.Buffer
}

// Start runs the program with arguments.
func Start(program string, args ...string) (*Process, error) {
	p := &Process{done: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start weir: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Write takes the output of the process.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// Output returns everything that the process has printed.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// OutputTail returns the end of the output.
func (p *Process) OutputTail() string {
	s := p.Output()
	return s[max(0, len(s)-3000):]
}

var pageLine = regexp.MustCompile(`page:? +(https?://127\.0\.0\.1:\d+)`)

// URL returns the address of the web UI, "" until the process has printed it.
func (p *Process) URL() string {
	if m := pageLine.FindStringSubmatch(p.Output()); m != nil {
		return m[1]
	}
	return ""
}

// PID returns the ID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitError returns an error if the process has ended, nil while it runs.
func (p *Process) ExitError() error {
	select {
	case <-p.done:
		return fmt.Errorf("weir ended (%v); its last output:\n%s", p.err, p.OutputTail())
	default:
		return nil
	}
}

// ExitCode returns the exit code of a process that has ended.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process as a crash does, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // the process may have ended
	<-p.done
}

var client = &http.Client{Timeout: 10 * time.Second}

// Get sends a GET request to a path of the web UI and its API.
func (p *Process) Get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+path, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// Metrics returns the metrics of the process by name.
func (p *Process) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	resp, err := p.Get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("cannot read weir's metrics: %w", err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read weir's metrics: %w", err)
	}
	return families, nil
}

// Sum returns the sum of a counter or gauge over all series that have the value in
// some label, or over all series if value is "". Without such a series it is an error.
func Sum(families map[string]*dto.MetricFamily, name, value string) (sum float64, err error) {
	found := false
	for _, m := range families[name].GetMetric() {
		if value == "" || slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetValue() == value }) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			found = true
		}
	}
	if !found {
		return 0, fmt.Errorf("weir has no metric %s with a label value %q yet", name, value)
	}
	return sum, nil
}
