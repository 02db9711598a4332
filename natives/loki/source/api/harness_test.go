package api_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	lokipush "github.com/grafana/loki/pkg/push"
	"github.com/klauspost/compress/snappy"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/api"
)

// receiver is a running component.
type receiver struct {
	*componenttest.Node
	t    testing.TB
	c    component.Component
	sink *flowtest.Sink
	args *api.Arguments
	url  string
	stop func()
}

// start runs a component on a free port. It sends to a sink unless edit sets
// other receivers.
func start(t testing.TB, edit func(*api.Arguments)) *receiver {
	t.Helper()
	r := &receiver{Node: componenttest.New(t, "loki.source.api.default"), t: t, sink: flowtest.NewSink("sink")}
	r.args = api.Registration().NewArgs().(*api.Arguments)
	r.args.Server.HTTP.ListenAddress, r.args.Server.HTTP.ListenPort = "127.0.0.1", 0
	r.args.ForwardTo = []*flow.Receiver{r.sink.Receiver()}
	if edit != nil {
		edit(r.args)
	}
	if err := cmp.Or(r.args.Validate(), r.args.Limits.Validate()); err != nil {
		t.Fatal(err)
	}
	r.c = r.Build(t, api.Registration(), r.args)
	r.stop = r.Run(t, r.c)
	r.Wait(t, func() bool { return r.Health().State == component.Healthy })
	r.url = "http://" + r.c.(component.Debugger).DebugInfo().(api.Info).Address
	return r
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// answer is the response that a client receives.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a body. headers alternate between names and values.
func (r *receiver) post(path string, body []byte, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.url+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return do(r.t, req)
}

func do(t testing.TB, req *http.Request) answer {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return answer{header: http.Header{}}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{resp.StatusCode, resp.Header, strings.TrimSpace(string(b))}
}

// want checks the status and the text of the response.
func (r *receiver) want(a answer, status int, says string) {
	r.t.Helper()
	if a.status != status || !strings.Contains(a.body, says) {
		r.t.Errorf("got %d %q, want %d with %q", a.status, a.body, status, says)
	}
}

const (
	pushPath = "/loki/api/v1/push"
	ctype    = "Content-Type"
	encoding = "Content-Encoding"
	asJSON   = "application/json"
	tenant   = "X-Scope-OrgID"
)

// stream returns a stream whose lines have the times 1 ns, 2 ns and so on.
func stream(labels string, lines ...string) lokipush.Stream {
	s := lokipush.Stream{Labels: labels}
	for i, l := range lines {
		s.Entries = append(s.Entries, lokipush.Entry{Timestamp: time.Unix(0, int64(i+1)), Line: l})
	}
	return s
}

func marshal(t testing.TB, ss ...lokipush.Stream) []byte {
	t.Helper()
	b, err := (&lokipush.PushRequest{Streams: ss}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// body returns a compressed push request.
func body(t testing.TB, ss ...lokipush.Stream) []byte { return snappy.Encode(nil, marshal(t, ss...)) }

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// lines waits for the lines and compares them, sorted by stream: the order of
// streams is not defined, but the order within a stream is.
func (r *receiver) lines(want ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bs, err := r.sink.WaitLines(ctx, len(want))
	if err != nil {
		r.t.Errorf("waited for %d lines: %v", len(want), err)
	}
	type row struct{ stream, line string }
	var rows []row
	for _, b := range bs {
		for i, l := range b.Line {
			for _, m := range b.MetaOf(i) {
				l += " " + m.Name + "=" + m.Value
			}
			rows = append(rows, row{b.Stream[i].String(), l})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.stream, b.stream) })
	var got []string
	for _, w := range rows {
		got = append(got, w.stream+" "+w.line)
	}
	if d := gocmp.Diff(want, got); d != "" {
		r.t.Errorf("lines (-want +got):\n%s", d)
	}
}
