//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/control"
)

// patience limits every wait: the machine may be slow, but a hang must fail the
// test.
const patience = 3 * time.Minute

// process is a running program with its output.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu  sync.Mutex
	out bytes.Buffer
}

// start runs a program and kills it at the end of the test if it still runs. Its
// output is shown if the test fails.
func start(t testing.TB, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(program), cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of %s:\n%s", p.name, tail(p.output(), 3000))
		}
	})
	return p
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// kill sends SIGKILL and waits.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// stop sends SIGTERM and returns the exit status.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s did not end within %s of SIGTERM", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// after calls do and waits until the output since then matches. It returns the
// first submatch, or else the match.
func (p *process) after(do func(), pattern string) string {
	p.t.Helper()
	from := len(p.output())
	do()
	re := regexp.MustCompile(pattern)
	var got string
	eventually(p.t, fmt.Sprintf("%s prints %s", p.name, pattern), func() error {
		select {
		case <-p.done:
			return fatal{fmt.Errorf("%s ended: %v", p.name, p.err)}
		default:
		}
		m := re.FindStringSubmatch(p.output()[from:])
		if m == nil {
			return fmt.Errorf("it printed %q", tail(p.output()[from:], 1000))
		}
		got = m[len(m)-1]
		return nil
	})
	return got
}

// await waits until the output has n matches and returns the first submatch of
// the n-th one, counted from 1.
func (p *process) await(n int, pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	var got string
	eventually(p.t, fmt.Sprintf("%s prints %d × %s", p.name, n, pattern), func() error {
		select {
		case <-p.done:
			return fatal{fmt.Errorf("%s ended: %v", p.name, p.err)}
		default:
		}
		ms := re.FindAllStringSubmatch(p.output(), -1)
		if len(ms) < n {
			return fmt.Errorf("%d matches", len(ms))
		}
		got = ms[n-1][len(ms[n-1])-1]
		return nil
	})
	return got
}

// fatal is an error that does not disappear by waiting.
type fatal struct{ error }

// eventually polls until f returns nil.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		if _, ok := err.(fatal); ok {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s until %s: %v", patience, what, err)
		case <-tick.C:
		}
	}
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// weirRun is a weir process with its storage.
type weirRun struct {
	*process
	url     string // URL of its port
	storage string
}

// request returns the response to a request over the control socket.
func (w *weirRun) request(path string) string {
	w.t.Helper()
	resp, err := control.Client(w.storage).Get(control.URL(path))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// pageLine matches the line with which weir reports the address of its page.
// Earlier log lines may contain other addresses.
const pageLine = `(?m)msg="page: (https?://127\.0\.0\.1:\d+)"$`

// startWeir runs the config dir/config.alloy.
func startWeir(t testing.TB, dir string, flags ...string) *weirRun {
	t.Helper()
	return startWeirAt(t, dir, "config.alloy", flags...)
}

// startWeirAt runs a config in dir, which is a file or a directory.
func startWeirAt(t testing.TB, dir, config string, flags ...string) *weirRun {
	t.Helper()
	storage := filepath.Join(dir, "data")
	args := append([]string{"run", "--server.http.listen-addr=127.0.0.1:0", "--storage.path=" + storage}, flags...)
	p := start(t, env(t, "WEIR"), append(args, filepath.Join(dir, config))...)
	return &weirRun{process: p, url: p.await(1, pageLine), storage: storage}
}

// startPrometheus runs a real server that accepts remote writes and scrapes the
// targets in scrapeConfigs (YAML). It returns its URL.
func startPrometheus(t *testing.T, scrapeConfigs string) string {
	t.Helper()
	return startPrometheusWindow(t, "30m", scrapeConfigs)
}

// startPrometheusWindow is startPrometheus with an out-of-order window.
func startPrometheusWindow(t *testing.T, window, scrapeConfigs string) string {
	t.Helper()
	return startPrometheusWith(t, window, scrapeConfigs, "--enable-feature=exemplar-storage")
}

// startPrometheusWith is startPrometheusWindow with additional flags.
func startPrometheusWith(t *testing.T, window, scrapeConfigs string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "prometheus.yml"), `
global:
  scrape_interval: 500ms
  scrape_timeout: 400ms
storage:
  tsdb:
    out_of_order_time_window: `+window+"\n"+scrapeConfigs)
	p := start(t, filepath.Join(env(t, "SERVERS"), "prometheus"), append([]string{
		"--config.file=" + filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0",
		"--web.enable-remote-write-receiver",
		"--query.max-samples=100000000",
	}, flags...)...)
	url := "http://" + p.await(1, `msg="Listening on".* address=(127\.0\.0\.1:\d+)`)
	p.await(1, `Server is ready to receive web requests`)
	return url
}

func env(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run `make integration`", name)
	}
	return v
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.TrimLeft(content, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
}
