//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/cmd/weir/sandbox"
)

// TestSandboxAPI sends the same samples and requests to a sandbox and to
// Prometheus, and compares the status and the JSON of the answers.
func TestSandboxAPI(t *testing.T) {
	real := startPrometheus(t, "")
	ours := serveSandbox(t)
	now := time.Now().Truncate(time.Second)
	for _, base := range []string{real, ours} {
		writeSeries(t, base, sandboxSeries(now))
	}

	at := fmt.Sprint(now.Unix())
	rng := func(from, to int, step string) url.Values {
		return url.Values{"start": {fmt.Sprint(now.Unix() + int64(from))}, "end": {fmt.Sprint(now.Unix() + int64(to))}, "step": {step}}
	}
	with := func(v url.Values, kv ...string) url.Values {
		for i := 0; i < len(kv); i += 2 {
			v[kv[i]] = append(v[kv[i]], kv[i+1])
		}
		return v
	}
	v := func(kv ...string) url.Values { return with(url.Values{}, kv...) }
	for _, r := range []struct {
		path   string
		params url.Values
	}{
		{"query", v("query", "requests", "time", at)},
		{"query", v("query", "requests", "time", now.Format(time.RFC3339))},
		{"query", v("query", "sum by (job) (requests)", "time", at)},
		{"query", v("query", "1/0", "time", at)},
		{"query", v("query", `"text"`, "time", at)},
		{"query", v("query", "requests[1m]", "time", at)},
		{"query", v("query", "rate(requests[1m])", "time", at)}, // with an info
		{"query", v("query", "absent", "time", at)},
		{"query", v("query", "sum(", "time", at)},
		{"query", v("query", "requests", "time", "yesterday")},
		{"query", v("query", "requests", "time", at, "timeout", "soon")},
		{"query", v("query", "requests + on(job) requests", "time", at)},
		{"query", v()},
		{"query_range", with(rng(-60, 60, "15"), "query", "requests")},
		{"query_range", with(rng(-60, 60, "1m"), "query", "sum(requests)")},
		{"query_range", with(rng(-60, 60, "0"), "query", "requests")},
		{"query_range", with(rng(-60, 60, "x"), "query", "requests")},
		{"query_range", with(rng(60, -60, "15"), "query", "requests")},
		{"query_range", with(rng(-86400, 0, "1"), "query", "requests")},
		{"query_range", v("query", "requests")},
		{"query_exemplars", with(rng(-60, 60, "1"), "query", "requests")},
		{"query_exemplars", v("query", "(")},
		{"format_query", v("query", "sum(requests)by(job)")},
		{"format_query", v("query", "(")},
		{"labels", v()},
		{"labels", v("match[]", "other")},
		{"labels", v("match[]", "other", "match[]", "requests")},
		{"labels", v("limit", "1")},
		{"labels", v("limit", "-1")},
		{"labels", v("match[]", "{")},
		{"labels", v("start", "x")},
		{"label/job/values", v()},
		{"label/job/values", v("match[]", "requests")},
		{"label/job/values", v("match[]", "absent")},
		{"label/absent/values", v()},
		{"series", v("match[]", "requests")},
		{"series", v("match[]", "requests", "match[]", `{job="b"}`)},
		{"series", v("match[]", "requests", "limit", "1")},
		{"series", v("match[]", "absent")},
		{"series", v()},
		{"metadata", v()},
		{"targets", v()},
		{"rules", v()},
		{"alerts", v()},
		{"alertmanagers", v()},
	} {
		t.Run(r.path+"?"+r.params.Encode(), func(t *testing.T) {
			want := prometheusAnswer(t, real+"/api/v1/"+r.path+"?"+r.params.Encode())
			if diff := cmp.Diff(want, prometheusAnswer(t, ours+"/api/v1/"+r.path+"?"+r.params.Encode())); diff != "" {
				t.Errorf("the sandbox differs from Prometheus (-Prometheus +sandbox):\n%s", diff)
			}
		})
	}
}

// serveSandbox runs a sandbox in this process until the test ends, and returns
// its URL.
func serveSandbox(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	in, hold := io.Pipe()
	out, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- sandbox.Serve(ctx, sandbox.Options{ListenAddr: "127.0.0.1:0", Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}, in, outW)
		outW.Close()
	}()
	t.Cleanup(func() {
		stop()
		hold.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	_, base, _ := strings.Cut(strings.TrimSpace(string(line[:n])), "listens on ")
	return base
}

// sandboxSeries returns three series of a counter with an exemplar, and one of
// another metric.
func sandboxSeries(now time.Time) []prompb.TimeSeries {
	var all []prompb.TimeSeries
	for i, job := range []string{"a", "b", "c"} {
		s := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "requests"}, {Name: "job", Value: job}, {Name: "path", Value: "/ü\n"}}}
		for at := -60; at <= 0; at += 15 {
			s.Samples = append(s.Samples, prompb.Sample{Timestamp: now.UnixMilli() + int64(at)*1000, Value: float64(1000*i + at)})
		}
		s.Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: "t" + job}}, Value: 1, Timestamp: now.UnixMilli()}}
		all = append(all, s)
	}
	return append(all, prompb.TimeSeries{
		Labels:  []prompb.Label{{Name: "__name__", Value: "other"}, {Name: "zone", Value: "z"}},
		Samples: []prompb.Sample{{Timestamp: now.UnixMilli(), Value: 1}},
	})
}

func writeSeries(t *testing.T, base string, series []prompb.TimeSeries) {
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
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		answer, _ := io.ReadAll(resp.Body)
		t.Fatalf("remote write to %s: %s: %s", base, resp.Status, answer)
	}
}

// prometheusAnswer returns the status and the JSON of an answer, without the
// texts of errors and notes, which are the sandbox's own.
func prometheusAnswer(t *testing.T, u string) map[string]any {
	t.Helper()
	resp, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatalf("%s: %s: %v", u, resp.Status, err)
	}
	body["code"] = resp.StatusCode
	for _, text := range []string{"error", "warnings", "infos"} {
		if body[text] != nil {
			body[text] = true
		}
	}
	if groups, ok := body["data"].(map[string]any); ok {
		delete(groups, "droppedTargetCounts") // for Prometheus's own pages
		delete(groups, "groupNextToken")
	}
	return body
}
