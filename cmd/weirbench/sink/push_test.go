package sink_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/grafana/loki/pkg/push"
	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/cmd/weirbench/sink"
)

// numbered returns an info line of a file with a number.
func numbered(n int) string { return fmt.Sprintf("level=info seq=#00001i-%010d", n) }

// pushLines pushes lines as one stream and returns the status.
func (e *endpoint) pushLines(contentType string, lines ...string) int {
	e.t.Helper()
	s := push.Stream{Labels: `{job="bench"}`}
	for _, l := range lines {
		s.Entries = append(s.Entries, push.Entry{
			Timestamp: time.Unix(1, 2), Line: l, StructuredMetadata: push.LabelsAdapter{{Name: "a", Value: numbered(99)}},
		})
	}
	raw, err := (&push.PushRequest{Streams: []push.Stream{s, {Labels: `{job="other"}`}}}).Marshal()
	if err != nil {
		e.t.Fatal(err)
	}
	return e.post("/loki/api/v1/push", contentType, s2.EncodeSnappy(nil, raw))
}

func (e *endpoint) post(path, contentType string, body []byte) int {
	e.t.Helper()
	resp, err := http.Post(e.url+path, contentType, bytes.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

var sizes = cmpopts.IgnoreFields(sink.Stats{}, "Bytes", "Raw", "LineBytes")

func TestPush(t *testing.T) {
	e := start(t)
	f := func(status int, want sink.Stats, lines ...string) {
		t.Helper()
		if got := e.pushLines("application/x-protobuf", lines...); got != status {
			t.Errorf("%q: got status %d, want %d", lines, got, status)
		}
		want.Streams, want.Sequences = 2, 1
		if diff := cmp.Diff(want, e.sink.Stats(true), sizes); diff != "" {
			t.Errorf("%q: %s", lines, diff)
		}
	}
	first, last := map[string]int{"00001i": 1}, func(n int) map[string]int { return map[string]int{"00001i": n} }
	f(204, sink.Stats{Requests: 1, Lines: 2, First: first, Last: last(2)}, numbered(1), numbered(2))
	f(204, sink.Stats{Requests: 2, Lines: 4, Gaps: 2, First: first, Last: last(6)}, numbered(3), numbered(6))
	f(204, sink.Stats{Requests: 3, Lines: 5, Gaps: 1, Reordered: 1, First: first, Last: last(6)}, numbered(5))
	f(204, sink.Stats{Requests: 4, Lines: 6, Gaps: 1, Reordered: 1, Duplicates: 1, Repeats: 1, First: first, Last: last(6)}, numbered(5))
	f(204, sink.Stats{Requests: 5, Lines: 8, Gaps: 1, Reordered: 1, Duplicates: 1, Repeats: 1, Unnumbered: 2, First: first, Last: last(6)}, "", "hello")
	if st := e.sink.Stats(false); st.LineBytes != int64(6*len(numbered(1))+len("hello")) || st.Bytes == 0 || st.Raw <= st.Bytes {
		t.Errorf("got %+v", st)
	}
}

func TestPushRefused(t *testing.T) {
	e := start(t)
	f := func(got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("got status %d, want %d", got, want)
		}
	}
	f(e.pushLines("application/json", "x"), 415)
	f(e.post("/loki/api/v1/push", "application/x-protobuf", []byte("no snappy")), 400)
	// A valid stream before an invalid one is not recorded either.
	good, err := (&push.PushRequest{Streams: []push.Stream{{Labels: "{}", Entries: []push.Entry{{Line: numbered(1)}}}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f(e.post("/loki/api/v1/push", "application/x-protobuf", s2.EncodeSnappy(nil, append(good, 0x0a, 0x7f))), 400)
	f(e.post("/loki/api/v1/push", "application/x-protobuf", s2.EncodeSnappy(nil, append(good, 0x0a, 3, 0x12, 1, 0xff))), 400)
	if err := e.sink.SetFault(&sink.Fault{Status: 429, Requests: 1}); err != nil {
		t.Fatal(err)
	}
	f(e.pushLines("application/x-protobuf", numbered(1)), 429)
	if diff := cmp.Diff(sink.Stats{Invalid: 4, Refused: 1}, e.sink.Stats(false)); diff != "" {
		t.Error(diff)
	}
	f(e.pushLines("application/x-protobuf", numbered(1)), 204)
}

func TestLines(t *testing.T) {
	e := start(t)
	if got := e.post("/lines", "text/plain", []byte(numbered(1)+"\n"+numbered(2))); got != 200 {
		t.Errorf("got status %d", got)
	}
	if err := e.sink.SetFault(&sink.Fault{Status: 503, Requests: 1}); err != nil {
		t.Fatal(err)
	}
	if got := e.post("/lines", "text/plain", []byte(numbered(9))); got != 503 {
		t.Errorf("got status %d", got)
	}
	if err := e.sink.SetFault(&sink.Fault{Status: 500, Requests: 1, Keep: true}); err != nil {
		t.Fatal(err)
	}
	if got := e.post("/lines", "text/plain", []byte(numbered(3)+"\n")); got != 500 {
		t.Errorf("got status %d", got)
	}
	l, err := e.sink.ListenLines()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		l.Serve(ctx)
		close(done)
	}()
	c, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	text := numbered(4) + "\n" + numbered(5) + "\n"
	for _, part := range []string{text[:10], text[10:]} {
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	idle, err := net.Dial("tcp", l.Address()) // ends with the server
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	c.Close()
	for e.sink.Stats(false).Lines < 5 {
	}
	cancel()
	<-done
	want := sink.Stats{Requests: 2, Refused: 1, Lines: 5, Sequences: 1, First: map[string]int{"00001i": 1}, Last: map[string]int{"00001i": 5}}
	if diff := cmp.Diff(want, e.sink.Stats(true), sizes); diff != "" {
		t.Error(diff)
	}
	if st := e.sink.Stats(false); st.Bytes != int64(len(text)/2*5)-1 {
		t.Errorf("%d bytes", st.Bytes)
	}
}

// FuzzPush checks that the sink finds the same lines as Loki's types, if both can
// decode the request.
func FuzzPush(f *testing.F) {
	add := func(p *push.PushRequest) {
		b, err := p.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	add(&push.PushRequest{})
	add(&push.PushRequest{Streams: []push.Stream{{Labels: `{a="b"}`, Entries: []push.Entry{{Line: numbered(1), Timestamp: time.Unix(5, 6)}, {Line: strings.Repeat("x", 300)}}}}})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := sink.Listen("127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		defer s.Serve(ctx) // closes the port
		r := httptest.NewRequest("POST", "/loki/api/v1/push", bytes.NewReader(s2.EncodeSnappy(nil, raw)))
		r.Header.Set("Content-Type", "application/x-protobuf")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		var p push.PushRequest
		if unmarshal := p.Unmarshal(raw); w.Code == 400 || unmarshal != nil {
			return
		}
		var want sink.Stats
		for _, stream := range p.Streams {
			for _, e := range stream.Entries {
				want.Lines++
				want.LineBytes += int64(len(e.Line))
			}
		}
		if got := s.Stats(false); w.Code != 204 || got.Lines != want.Lines || got.LineBytes != want.LineBytes {
			t.Fatalf("status %d, got %+v, want %+v", w.Code, got, want)
		}
	})
}
