package write_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/write"
)

// TestJudge checks the interpretation of responses. The messages are those of
// Loki 3.7.
func TestJudge(t *testing.T) {
	b := &batch.Logs{Source: 1}
	for i, s := range []*batch.Stream{stream("app", "api", "env", "prod"), stream("app", "web")} {
		l := lines(1, s, 10*(i+1), t0)
		b.Stream, b.T, b.Line = append(b.Stream, l.Stream...), append(b.T, l.T...), append(b.Line, l.Line...)
	}
	blocks := write.Encode(b) // 10 lines of api and 20 of web
	f := func(status int, message string, want map[string]int) {
		t.Helper()
		lost, what := write.Judge(status, message, true, blocks...)
		if what != "" {
			t.Errorf("%d %s: it is %s", status, message, what)
		}
		diff(t, want, lost)
	}
	type lost = map[string]int
	f(200, "", nil)
	f(204, "", nil)

	f(400, "max entry size '262144' bytes exceeded for stream '{app=\"api\", env=\"prod\"}' while adding an entry with length '300000' bytes", lost{"line_too_long": 1})
	f(400, "3 errors like: max entry size '262144' bytes exceeded for stream '{app=\"web\"}' while adding an entry with length '300000' bytes; "+
		"1 errors like: entry for stream '{app=\"web\"}' has timestamp too old: 2020-01-01T00:00:00Z, oldest acceptable timestamp is: 2025-01-01T00:00:00Z",
		lost{"line_too_long": 3, "timestamp": 1})
	f(400, "2 errors like: entry for stream '{app=\"web\", x=\"it's\"}' has timestamp too new: 2035-01-01T00:00:00Z", lost{"timestamp": 2})
	f(400, "entry for stream '{app=\"api\", env=\"prod\"}' has 20 label names; limit 15", lost{"label_limit": 10})
	f(400, "stream '{app=\"web\"}' has label value too long: 'xxx'", lost{"label_limit": 20})
	f(400, "stream '{app=\"unknown\"}' has label name too long: 'xxx'", lost{"label_limit": 1})
	f(400, "stream '{app=\"web\"}' has duplicate label name: 'app'", lost{"invalid_labels": 20})
	f(400, `error parsing labels '{app="web"}' with error: 1:2: parse error`, lost{"invalid_labels": 20})
	f(400, "error at least one label pair is required per stream", lost{"invalid_labels": 1})
	f(400, "missing required labels 'team' for user 'fake' for stream '{app=\"web\"}' (policy: '')", lost{"label_limit": 20})
	f(400, "stream '{app=\"web\"}' has structured metadata too large: '70000' bytes, limit: '65536' bytes. Please see", lost{"metadata": 1})
	f(400, "stream '{app=\"web\"}' includes structured metadata, but this feature is disallowed. Please see", lost{"metadata": 1})
	f(400, "entry with timestamp 2025-01-01 00:00:00 +0000 UTC ignored, reason: 'entry too far behind, entry timestamp is: 2025-01-01T00:00:00Z, "+
		"oldest acceptable timestamp is: 2025-01-02T00:00:00Z',\nuser 'fake', total ignored: 7 out of 20 for stream: {app=\"web\"}", lost{"out_of_order": 7})

	// All lines.
	f(400, "couldn't parse push request: unexpected EOF", lost{"rejected": 30})
	f(422, "error at least one valid stream is required for ingestion", lost{"rejected": 30})
	f(260, "ingestion blocked for user 'fake' until '2026-01-01' with status code '260'", lost{"blocked": 30})
	f(260, "ingestion blocked for user 'fake' (policy: 'p') until '2026-01-01' with status code '260'", lost{"blocked": 1})
	f(400, "99 errors like: max entry size '1' bytes exceeded for stream '{}' while", lost{"line_too_long": 30})
	f(400, "99999999999999999999999 errors like: max entry size '1' bytes exceeded for stream '{}' while", lost{"line_too_long": 30})

	kind := func(want string, retry429 bool, message string, statuses ...int) {
		t.Helper()
		for _, status := range statuses {
			if _, got := write.Judge(status, message, retry429, blocks...); got != want {
				t.Errorf("%d %s is %q, want %q", status, message, got, want)
			}
		}
	}
	kind("again", true, "x", 301, 302, 401, 403, 404, 405, 407, 408, 429, 500, 502, 503, 504, 599)
	kind("again", false, "x", 401, 500)
	kind("too large", true, "x", 413)
	kind("too large", true, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (5 vs. 4)", 500)
	kind("too large", true, "message size too large than max (5 vs 4)", 400)
	if lost, _ := write.Judge(429, "Maximum active stream limit exceeded when trying to create stream {app=\"web\"}, reduce the", false, blocks...); fmt.Sprint(lost) != "map[stream_limit:20]" {
		t.Errorf("got %v", lost)
	}
	lostNow, _ := write.Judge(429, "entry with timestamp x ignored, reason: 'Per stream rate limit exceeded (limit: 3MB/sec) …',\nuser 'fake', total ignored: 4 out of 20 for stream: {}", false, blocks...)
	diff(t, lost{"rate_limited": 4}, lostNow)
	lostNow, _ = write.Judge(429, "ingestion rate limit exceeded", false, blocks...)
	diff(t, lost{"rate_limited": 30}, lostNow)
}

// TestRefusedLines: if Loki refuses some lines, the other lines count as sent,
// and nothing is sent again.
func TestRefusedLines(t *testing.T) {
	srv := newServer(t)
	srv.answer(400, "2 errors like: max entry size '10' bytes exceeded for stream '{s=\"a\"}' while adding an entry with length '20' bytes")
	n := startNew(t, endpoint(srv.URL, ""))
	n.accept(t, lines(1, stream("s", "a"), 5, t0))
	srv.wait(t, func() bool { return len(srv.received()) == 1 })
	srv.heal()
	n.accept(t, lines(1, stream("s", "b"), 1, t0))
	srv.wait(t, func() bool { return srv.count() == 1 })
	n.stop() // waits until the last response is counted
	diff(t, []float64{2, 4, 0}, []float64{
		n.metric(t, "weir_loki_write_lines_dropped_total", ""), n.metric(t, "weir_loki_write_lines_sent_total", ""), n.metric(t, "weir_loki_write_lines_retried_total", ""),
	})
	if !strings.Contains(n.Logs(), "max entry size") || !strings.Contains(n.Logs(), "lines=2") {
		t.Errorf("the log does not say what was refused:\n%s", n.Logs())
	}
	diff(t, map[string]uint64{"line_too_long": 2}, n.Stats.DroppedLines())
}

// TestTooLarge: a request that is too large is split, down to single lines. A
// single line that is too large is lost, counted and logged; everything else is
// sent.
func TestTooLarge(t *testing.T) {
	const most = 3000
	srv := newServer(t)
	srv.setFault(func(w http.ResponseWriter, r request, n int) bool {
		if n == 1 || r.push.Size() > most {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return true
		}
		return false
	})
	n := startNew(t, endpoint(srv.URL, `batch_wait = "300ms"`))
	a, b := stream("s", "a"), stream("s", "b")
	var all []*batch.Logs
	for i := range int64(4) {
		x := lines(1, a, 30, t0+i*1000)
		for k := range x.Stream {
			if k%2 == 1 {
				x.Stream[k] = b
			}
			x.Line[k] += strings.Repeat("x", 500)
		}
		if i == 2 {
			x.Line[7] = strings.Repeat("y", 2*most)
		}
		all = append(all, x)
		n.accept(t, x)
	}
	srv.wait(t, func() bool { return srv.count() == 119 })
	var want []string
	for _, r := range rows(all...) {
		if !strings.Contains(r, "yyy") {
			want = append(want, r)
		}
	}
	diff(t, sorted(want), sorted(srv.rows()))
	n.stop()
	diff(t, map[string]uint64{"request_too_large": 1}, n.Stats.DroppedLines())
	if !strings.Contains(n.Logs(), "a line of 6000 bytes, of stream {s=\\\"b\\\"} at 2025-01-01T00:00:00.000002007Z") {
		t.Errorf("the log does not name the line:\n%s", n.Logs())
	}
}

// TestWrongPath: if the path is missing in the URL, the error contains the
// correct path.
func TestWrongPath(t *testing.T) {
	f := func(url string, status int, want string) {
		t.Helper()
		if got := write.AnswerError(url, status); got != want {
			t.Errorf("%s, %d: got %q, want %q", url, status, got, want)
		}
	}
	const hint = "server answered 404 Not Found: no; Loki takes lines at /loki/api/v1/push: see the endpoint's url"
	f("http://loki:3100", 404, hint)
	f("http://loki:3100/api/v1/push", 404, hint)
	f("http://loki:3100/loki/api/v1/push", 404, "server answered 404 Not Found: no")
	f("http://loki:3100", 405, "server answered 405 Method Not Allowed: no")
}

// TestWrongPassword: a wrong password or path does not lose lines.
func TestWrongPassword(t *testing.T) {
	for _, status := range []int{401, 403, 404} {
		srv := newServer(t)
		srv.answer(status, "no")
		n := startNew(t, endpoint(srv.URL, "name = \"x\"\nmin_backoff_period = \"1h\"\nmax_backoff_period = \"1h\""))
		b := lines(1, stream("s", "a"), 3, t0)
		n.accept(t, b)
		srv.wait(t, func() bool { return len(srv.received()) == 1 })
		srv.setFault(func(w http.ResponseWriter, r request, _ int) bool {
			if _, password, _ := r.BasicAuth(); password != "right" {
				w.WriteHeader(status)
				return true
			}
			return false
		})
		if err := n.c.Update(decode(t, endpoint(srv.URL, "name = \"x\"\nbasic_auth {\n username = \"u\"\n password = \"right\"\n}"))); err != nil {
			t.Fatal(err)
		}
		srv.wait(t, func() bool { return srv.count() == 3 })
		diff(t, rows(b), srv.rows())
		n.stop()
		diff(t, map[string]uint64{}, n.Stats.DroppedLines())
	}
}

// TestGivesUp: max_backoff_retries and retry_on_http_429 = false have their
// documented effects.
func TestGivesUp(t *testing.T) {
	f := func(status, requests int, more, reason string) {
		t.Helper()
		srv := newServer(t)
		srv.answer(status, "no")
		n := startNew(t, endpoint(srv.URL, more))
		n.accept(t, lines(1, stream("s", "a"), 3, t0))
		srv.wait(t, func() bool { return len(srv.received()) == requests })
		srv.heal()
		n.accept(t, lines(1, stream("s", "b"), 1, t0))
		srv.wait(t, func() bool { return srv.count() == 1 })
		n.stop()
		diff(t, map[string]uint64{reason: 3}, n.Stats.DroppedLines())
		diff(t, requests+1, len(srv.received()))
	}
	f(503, 3, "max_backoff_retries = 3", "retries")
	f(429, 1, "retry_on_http_429 = false", "rate_limited")
}

// TestFaultyServers: whatever a server does with a request, its lines arrive.
func TestFaultyServers(t *testing.T) {
	hijack := func(w http.ResponseWriter, text string) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		c.Write([]byte(text))
		c.Close()
	}
	for name, fault := range map[string]func(w http.ResponseWriter){
		"reset":       func(w http.ResponseWriter) { hijack(w, "") },
		"half answer": func(w http.ResponseWriter) { hijack(w, "HTTP/1.1 20") },
		"nonsense":    func(w http.ResponseWriter) { hijack(w, "220 smtp.example.com ESMTP\r\n") },
		"redirect":    func(w http.ResponseWriter) { w.Header().Set("Location", "/login"); w.WriteHeader(302) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			srv.setFault(func(w http.ResponseWriter, _ request, n int) bool {
				if n > 3 {
					return false
				}
				fault(w)
				return true
			})
			n := startNew(t, endpoint(srv.URL, ""))
			var all []*batch.Logs
			for i := range int64(5) {
				b := lines(1, stream("s", "a"), 3, t0+i*10)
				n.accept(t, b)
				all = append(all, b)
			}
			srv.wait(t, func() bool { return srv.count() == 15 })
			diff(t, rows(all...), srv.rows())
		})
	}
}

// TestHang: a server that does not respond delays a stop only briefly, and does
// not block retries for ever.
func TestHang(t *testing.T) {
	srv := newServer(t)
	hold := make(chan bool)
	srv.setFault(func(_ http.ResponseWriter, r request, n int) bool {
		if n > 1 {
			return false
		}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		return true
	})
	n := startNew(t, endpoint(srv.URL, `remote_timeout = "1s"`))
	n.accept(t, lines(1, stream("s", "a"), 3, t0))
	srv.wait(t, func() bool { return srv.count() == 3 })
	close(hold)
	n.stop()
}
