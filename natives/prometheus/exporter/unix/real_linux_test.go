//go:build integration

package unix_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
)

// TestLikeRealNodeExporter compares the series of this host with those of a
// node_exporter process whose flags are Alloy's defaults.
func TestLikeRealNodeExporter(t *testing.T) {
	dir := os.Getenv("SERVERS")
	if dir == "" {
		t.Skip("SERVERS is not set")
	}
	// Settings are global to the process, and the other tests use different ones.
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPrintHost$", "-test.v")
	child.Env = append(os.Environ(), "WEIR_TEST_PRINT_HOST="+filepath.Join(t.TempDir(), "host.prom"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	mine, err := os.ReadFile(strings.TrimPrefix(child.Env[len(child.Env)-1], "WEIR_TEST_PRINT_HOST="))
	if err != nil {
		t.Fatal(err)
	}
	theirs := nodeExporter(t, filepath.Join(dir, "node_exporter"))

	// These metrics depend on the time or on the process, or exist because of
	// another process.
	skip := regexp.MustCompile(`^(go_|process_|promhttp_|node_exporter_build_info|node_scrape_collector_)`)
	want, got := series(theirs, skip), series(string(mine), skip)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-node_exporter +weir):\n%s", diff)
	}
	if len(got) < 100 {
		t.Errorf("got only %d series", len(got))
	}
}

// TestPrintHost is the child process of TestLikeRealNodeExporter.
func TestPrintHost(t *testing.T) {
	path := os.Getenv("WEIR_TEST_PRINT_HOST")
	if path == "" {
		t.Skip("not called by TestLikeRealNodeExporter")
	}
	_, c := mustBuild(t, defaults())
	code, body := get(t, c, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("got status %d:\n%s", code, body)
	}
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// nodeExporter runs a node_exporter and returns its metrics.
func nodeExporter(t *testing.T, bin string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append(unix.Flags(defaults()), "--web.listen-address=127.0.0.1:0", "--web.disable-exporter-metrics")
	cmd := exec.CommandContext(ctx, bin, args...)
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // killed by cancel
	}()
	address := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	for s := bufio.NewScanner(logs); s.Scan(); {
		m := address.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, logs) }()
		resp, err := http.Get("http://" + m[1] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		http.DefaultClient.CloseIdleConnections()
		return string(body)
	}
	t.Fatal("node_exporter ended before it listened")
	return ""
}

// series returns the series of an exposition, sorted, without values.
func series(text string, skip *regexp.Regexp) (out []string) {
	for name, lines := range samples(text) {
		if skip.MatchString(name) {
			continue
		}
		for _, line := range lines {
			out = append(out, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	slices.Sort(out)
	return out
}
