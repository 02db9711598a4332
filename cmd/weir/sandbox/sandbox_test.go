package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/cmd/weir/sandbox"
)

// serve runs a sandbox in this process and returns its URL and directory.
func serve(t *testing.T, addr string) (base, dir string) {
	t.Helper()
	dir = t.TempDir()
	in, stop := io.Pipe()
	out, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- sandbox.Serve(context.Background(), sandbox.Options{ListenAddr: addr, Dir: dir, Logger: slog.New(slog.DiscardHandler)}, in, outW)
		outW.Close()
	}()
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("it did not listen: %v", <-done)
	}
	t.Cleanup(func() {
		stop.Close() // closes the standard input
		if err := <-done; err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	_, base, _ = strings.Cut(strings.TrimSpace(string(line[:n])), "listens on ")
	return base, dir
}

func get(t *testing.T, u string) string {
	t.Helper()
	resp, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", u, resp.StatusCode, err, body)
	}
	return string(body)
}

func write(t *testing.T, base string, series ...prompb.TimeSeries) int {
	t.Helper()
	body, err := (&prompb.WriteRequest{Timeseries: series}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("POST", base+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func sample(name string, at time.Time, v float64) prompb.TimeSeries {
	return prompb.TimeSeries{
		Labels:  []prompb.Label{{Name: "__name__", Value: name}, {Name: "job", Value: "api"}},
		Samples: []prompb.Sample{{Timestamp: at.UnixMilli(), Value: v}},
	}
}

func query(t *testing.T, base, q string) string {
	t.Helper()
	var r struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(get(t, base+"/api/v1/query?"+url.Values{"query": {q}}.Encode())), &r); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range r.Data.Result {
		out = append(out, s.Metric["__name__"]+"="+s.Value[1].(string))
	}
	return strings.Join(out, " ")
}

func TestSandboxIsAPrometheus(t *testing.T) {
	base, _ := serve(t, "127.0.0.1:0")
	now := time.Now()
	if got := write(t, base, sample("a", now, 1), sample("b", now, 2)); got != http.StatusNoContent {
		t.Fatalf("status %d", got)
	}
	// Late, but within the out-of-order window.
	if got := write(t, base, sample("a", now.Add(-10*time.Hour), 7)); got != http.StatusNoContent {
		t.Errorf("a late sample: status %d", got)
	}
	if got := query(t, base, `{job="api"}`); got != "a=1 b=2" {
		t.Errorf("got %s", got)
	}
	if got := query(t, base, "a @ "+fmt.Sprint(now.Add(-10*time.Hour+time.Minute).Unix())); got != "a=7" {
		t.Errorf("the late sample: got %q", got)
	}
	for path, want := range map[string]string{
		"/api/v1/labels":                "__name__",
		"/api/v1/label/__name__/values": `["a","b"]`,
		"/api/v1/series?match[]=a":      `"job":"api"`,
		"/api/v1/metadata":              `"success"`,
		"/api/v1/targets":               `"activeTargets":[]`,
		"/api/v1/rules":                 `"groups":[]`,
		"/api/v1/alertmanagers":         `"success"`,
		"/api/v1/status/tsdb":           `"numSeries":2`,
		"/api/v1/query_range?query=a&start=" + fmt.Sprint(now.Unix()-60) + "&end=" + fmt.Sprint(now.Unix()+60) + "&step=60": `"matrix"`,
		"/metrics":   "prometheus_tsdb_head_series 2",
		"/-/ready":   "ok",
		"/-/healthy": "ok",
		"/":          "PromQL",
	} {
		if got := get(t, base+path); !strings.Contains(got, want) {
			t.Errorf("%s: no %s in %s", path, want, got)
		}
	}
}

func TestSandboxTakesAFreePortWhenItsOwnIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	base, _ := serve(t, l.Addr().String())
	if base == "http://"+l.Addr().String() || get(t, base+"/-/ready") != "ok\n" {
		t.Errorf("listens on %s", base)
	}
}

func TestSandboxDirectoryIsReported(t *testing.T) {
	err := sandbox.Serve(t.Context(), sandbox.Options{Dir: "/does/not/exist"}, strings.NewReader(""), io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot make the sandbox's directory: ") {
		t.Errorf("got %v", err)
	}
}

func start(t *testing.T, env string) (*sandbox.Process, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(env, "=")
	t.Setenv(name, value)
	return sandbox.Start(t.Context(), exe, nil, func(string) {})
}

func TestStartAndClose(t *testing.T) {
	dir := t.TempDir()
	p, err := start(t, "SANDBOX_TEST_DIR="+dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, p.URL+"/-/ready"); got != "ok\n" {
		t.Errorf("got %q", got)
	}
	select {
	case <-p.Done():
		t.Error("done before Close")
	default:
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	<-p.Done()
	left, err := os.ReadDir(dir)
	if diff := cmp.Diff([]os.DirEntry{}, left); diff != "" || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStartReportsAChildThatFails(t *testing.T) {
	_, err := start(t, "SANDBOX_TEST_FAIL=1")
	want := "cannot start the sandbox: it ended before it listened\nthe sandbox ended with exit status 3"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := sandbox.Start(t.Context(), "/does/not/exist", nil, func(string) {}); err == nil {
		t.Error("no error")
	}
}
