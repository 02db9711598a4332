package remotewrite_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage/remote"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// poll waits until ok returns true. It fails the test after a minute.
func poll(t *testing.T, n *node, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain:\n%.5000s", n.Logs())
		}
	}
}

// total returns the sum of a counter.
func total(t *testing.T, n *node, name string) (sum float64) {
	t.Helper()
	fams, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fams {
		if f.GetName() == name {
			for _, m := range f.Metric {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// hijack takes over the connection of a request from the server.
func hijack(t *testing.T, w http.ResponseWriter) *net.TCPConn {
	t.Helper()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		panic(http.ErrAbortHandler)
	}
	return conn.(*net.TCPConn)
}

// TestHostileEndpoint: whatever the connections do, every sample arrives, in
// order, and with the same bytes in each attempt.
func TestHostileEndpoint(t *testing.T) {
	reset := func(t *testing.T, w http.ResponseWriter) {
		conn := hijack(t, w)
		conn.SetLinger(0)
		conn.Close()
	}
	faults := map[string]func(t *testing.T, w http.ResponseWriter, r *http.Request, n int) bool{
		"reset": func(t *testing.T, w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%2 == 1 {
				reset(t, w)
			}
			return n%2 == 1
		},
		"reset in the head": func(t *testing.T, w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%2 == 1 {
				conn := hijack(t, w)
				io.WriteString(conn, "HTTP/1.1 20")
				conn.Close()
			}
			return n%2 == 1
		},
		"no HTTP": func(t *testing.T, w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%2 == 1 {
				conn := hijack(t, w)
				io.WriteString(conn, "\x16\x03\x01\x02\x00 what is that\r\n\r\n")
				conn.Close()
			}
			return n%2 == 1
		},
		"closed after every answer": func(_ *testing.T, w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.Header().Set("Connection", "close")
			return false
		},
		// Half-closed: the response says that the connection stays open, but it
		// does not.
		"closed behind an answer": func(t *testing.T, w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%3 == 1 {
				conn := hijack(t, w)
				io.WriteString(conn, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
				conn.CloseWrite()
				io.Copy(io.Discard, conn)
				conn.Close()
			}
			return n%3 == 1
		},
		"head of a megabyte": func(_ *testing.T, w http.ResponseWriter, _ *http.Request, n int) bool {
			if n%3 == 1 {
				w.Header().Set("X-Much", strings.Repeat("x", 1<<20))
				w.WriteHeader(503)
			}
			return n%3 == 1
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			srv.setFault(func(w http.ResponseWriter, r *http.Request, n int) bool { return fault(t, w, r, n) })
			n := startNew(t, endpoint(srv.URL, `queue_config {
				max_samples_per_send = 5
				min_backoff = "1ms"
				max_backoff = "2ms" }`))
			var bs []*batch.Metrics
			for i := range 8 {
				bs = append(bs, gauges(uint64(i%2), 5, t0+int64(i)*1000))
			}
			n.accept(t, bs...)
			srv.wait(t, func() bool { return srv.count(t) == 40 })
			diff(t, rows(bs...), srv.samples(t))
			checkOrder(t, srv)
			n.stop()
			diff(t, map[string]uint64{}, n.Stats.Dropped())
		})
	}
}

// TestAnswersThatDoNotEnd: the header of a response is sufficient. An endpoint
// that never ends the body delays a shard for seconds, not for remote_timeout,
// which is longer than the timeout of this test.
func TestAnswersThatDoNotEnd(t *testing.T) {
	f := func(status int, sent float64, dropped map[string]uint64) {
		t.Helper()
		release := make(chan bool)
		var mu sync.Mutex
		requests := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			fmt.Fprint(w, "wait for it")
			w.(http.Flusher).Flush()
			mu.Lock()
			requests++
			mu.Unlock()
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}))
		defer srv.Close()
		defer close(release)
		n := startNew(t, endpoint(srv.URL, "remote_timeout = \"24h\"\nqueue_config { max_samples_per_send = 2 }"))
		for i := range int64(2) {
			n.accept(t, gauges(1, 2, t0+i)) // all in one shard
		}
		poll(t, n, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return requests == 2
		})
		poll(t, n, func() bool {
			return total(t, n, "weir_remote_write_samples_sent_total")+total(t, n, "weir_remote_write_samples_dropped_total") == 4
		})
		n.stop()
		n.metric(t, "weir_remote_write_samples_sent_total", "", sent)
		diff(t, dropped, n.Stats.Dropped())
	}
	f(200, 4, map[string]uint64{})
	f(400, 0, map[string]uint64{"rejected": 4})
}

// TestEndpointThatNeverReads: requests time out, are counted as timeouts, and
// wait.
func TestEndpointThatNeverReads(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the kernel accepts the connections
	n := startNew(t, endpoint("http://"+l.Addr().String(), `remote_timeout = "300ms"`))
	n.accept(t, gauges(1, 3, t0))
	poll(t, n, func() bool { return strings.Contains(n.Logs(), "cannot send") })
	if log := n.Logs(); !strings.Contains(log, "deadline exceeded") {
		t.Errorf("the log says\n%s", log)
	}
	fams, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, f := range fams {
		if f.GetName() == "weir_remote_write_send_seconds" {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if l.GetName() == "outcome" {
						outcomes = append(outcomes, l.GetValue())
					}
				}
			}
		}
	}
	diff(t, []string{"timeout"}, outcomes)
	n.stop()
	diff(t, map[string]uint64{}, n.Stats.Dropped())
}

// TestJitter: shards that fail at the same time do not retry at the same time.
func TestJitter(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c, endpoint(srv.URL, `queue_config {
		min_shards = 8
		max_samples_per_send = 2
		min_backoff = "40m"
		max_backoff = "40m" }`))
	waits := map[time.Duration]bool{}
	for source := range uint64(8) {
		n.accept(t, gauges(source, 2, t0))
		waits[c.waitWithin(t, 40*time.Minute, 44*time.Minute)] = true
	}
	if len(waits) < 6 {
		t.Errorf("8 shards wait for %v", waits)
	}
}

// TestClockLeaps: if the clock is set while samples are gathered or wait for a
// retry, they are sent at the same time as without the change, and none is
// dropped because of its age.
func TestClockLeaps(t *testing.T) {
	for _, leap := range []time.Duration{time.Hour, -time.Hour} {
		srv := newServer(t)
		srv.answer(503)
		c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
		n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c, endpoint(srv.URL, `queue_config {
			max_samples_per_send = 10
			min_backoff = "31s"
			max_backoff = "31s" }`))
		gathered := make(chan error)
		go func() { gathered <- n.c.ConsumeMetrics(t.Context(), gauges(1, 3, t0)) }()
		d := c.waitWithin(t, 75*time.Millisecond, 100*time.Millisecond)
		c.Leap(leap)
		c.Advance(d)
		if err := <-gathered; err != nil {
			t.Fatal(err)
		}
		d = c.waitWithin(t, 31*time.Second, 34200*time.Millisecond)
		c.Leap(leap)
		srv.heal()
		c.Advance(d)
		srv.wait(t, func() bool { return srv.count(t) == 3 })
		n.accept(t, gauges(2, 10, t0+2000))
		srv.wait(t, func() bool { return srv.count(t) == 13 })
		n.stop()
		diff(t, map[string]uint64{}, n.Stats.Dropped())
	}
}

// TestRejectedSeriesIsLogged: the log names a series even if the receiver does
// not.
func TestRejectedSeriesIsLogged(t *testing.T) {
	f := func(more string, status int, head map[string]string, want string) {
		t.Helper()
		srv := newServerOf(t, time.Hour, v1, v2)
		srv.setFault(func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			for k, v := range head {
				w.Header().Set(k, v)
			}
			http.Error(w, "I do not like it", status)
			return true
		})
		n := startNew(t, endpoint(srv.URL, more))
		b := gauges(1, 3, t0)
		b.Series[0] = series("first", "long", strings.Repeat("é", 1<<20))
		n.accept(t, b)
		poll(t, n, func() bool { return strings.Contains(n.Logs(), want) })
		log := n.Logs()
		if !strings.Contains(log, "I do not like it") || !strings.Contains(log, `first{long=`) || !strings.Contains(log, "é…") {
			t.Errorf("the log says\n%.3000s", log)
		}
		if len(log) > 10_000 {
			t.Errorf("the log has %d bytes", len(log))
		}
		n.stop()
	}
	f("", 400, nil, "the endpoint rejects samples")
	f(asV2, 400, map[string]string{"X-Prometheus-Remote-Write-Samples-Written": "2"}, "the endpoint rejects some of the samples")
	f(asV2, 200, map[string]string{"X-Prometheus-Remote-Write-Samples-Written": "1"}, "the endpoint rejects some of the samples")
}

// recorder is an endpoint that records its requests.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

// record stores all parts of a request that a client controls. The host is
// replaced by its name in hosts, because ports differ.
func (r *recorder) record(t *testing.T, req *http.Request, host string) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
	}
	var head []string
	for k, v := range req.Header {
		// The User-Agent is weir's own, and the Referer is added by http.Client.
		if k != "User-Agent" && k != "Referer" {
			head = append(head, k+": "+strings.Join(v, ","))
		}
	}
	slices.Sort(head)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprintf("%s %s %s [%s] %d bytes %x", host, req.Method, req.URL, strings.Join(head, "; "), len(body), body))
}

// TestAsPrometheusClient compares the requests that arrive, through redirects and
// proxies and with credentials, with those of Prometheus's client for the same
// settings and the same block. Unlike Prometheus's client, weir does not follow a
// redirect to another host: see TestRedirects.
func TestAsPrometheusClient(t *testing.T) {
	const arrived = "/arrived"
	// f sends with both to a server whose responses come from answer, until a
	// request gets a 2xx response.
	type setting struct {
		weir, prometheus string // in the syntax of each; $OTHER is a second server
	}
	f := func(name string, s setting, answer func(w http.ResponseWriter, r *http.Request, other string)) {
		t.Run(name, func(t *testing.T) {
			play := func(send func(url, other string)) []string {
				var rec recorder
				var other *httptest.Server
				handler := func(host string) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						rec.record(t, r, host)
						answer(w, r, other.URL)
					})
				}
				one := httptest.NewServer(handler("one"))
				defer one.Close()
				other = httptest.NewServer(handler("other"))
				defer other.Close()
				send(one.URL, other.URL)
				for i := range rec.seen {
					rec.seen[i] = strings.NewReplacer(one.URL, "$ONE", other.URL, "$OTHER").Replace(rec.seen[i])
				}
				return rec.seen
			}
			var body []byte
			ours := play(func(url, other string) {
				n := startNew(t, endpoint(url+"/write", strings.ReplaceAll(s.weir, "$OTHER", other)))
				n.accept(t, gauges(1, 3, t0))
				poll(t, n, func() bool { return total(t, n, "weir_remote_write_samples_sent_total") == 3 })
				n.stop()
			})
			if len(ours) == 0 {
				t.Fatal("nothing came")
			}
			hex := ours[0][strings.LastIndexByte(ours[0], ' ')+1:]
			if _, err := fmt.Sscanf(hex, "%x", &body); err != nil {
				t.Fatal(err)
			}
			theirs := play(func(target, other string) {
				u, err := url.Parse(target + "/write")
				if err != nil {
					t.Fatal(err)
				}
				c := &remote.ClientConfig{
					URL: &commonconfig.URL{URL: u}, Timeout: model.Duration(30 * time.Second),
					RetryOnRateLimit: true, WriteProtoMsg: remoteapi.WriteV1MessageType,
				}
				text := strings.ReplaceAll(s.prometheus, "$OTHER", other) + "follow_redirects: true\n"
				http, err := commonconfig.LoadHTTPConfig(text)
				if err != nil {
					t.Fatal(err)
				}
				c.HTTPClientConfig = *http
				c.HTTPClientConfig.EnableHTTP2 = false
				client, err := remote.NewWriteClient("test", c)
				if err != nil {
					t.Fatal(err)
				}
				for attempt := range 10 {
					if _, err := client.Store(t.Context(), bytes.Clone(body), attempt); err == nil {
						break
					}
				}
			})
			diff(t, theirs, ours)
		})
	}
	ok := func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusNoContent) }
	redirect := func(status int) func(w http.ResponseWriter, r *http.Request, other string) {
		return func(w http.ResponseWriter, r *http.Request, _ string) {
			if r.URL.Path == arrived {
				w.WriteHeader(200)
				return
			}
			http.Redirect(w, r, arrived, status)
		}
	}
	basic := setting{"basic_auth {\n username = \"u\"\n password = \"p\"\n}", "basic_auth:\n  username: u\n  password: p\n"}
	bearer := setting{`bearer_token = "secret"`, "bearer_token: secret\n"}
	proxied := setting{`proxy_url = "$OTHER"`, "proxy_url: $OTHER\n"}
	f("plain", setting{}, ok)
	f("basic auth", basic, ok)
	f("307", setting{}, redirect(307))
	f("308 with a token", bearer, redirect(308))
	f("307 with basic auth", basic, redirect(307))
	f("proxy", proxied, ok)
	f("proxy and basic auth", setting{proxied.weir + "\n" + basic.weir, proxied.prometheus + basic.prometheus}, ok)
	f("proxy and no_proxy", setting{proxied.weir + "\nno_proxy = \"127.0.0.1\"", proxied.prometheus + "no_proxy: 127.0.0.1\n"}, ok)
	attempts := func(status int) func(w http.ResponseWriter, r *http.Request, other string) {
		return func(w http.ResponseWriter, r *http.Request, _ string) {
			if r.Header.Get("Retry-Attempt") == "2" {
				w.WriteHeader(200)
				return
			}
			w.WriteHeader(status)
		}
	}
	f("500", setting{}, attempts(500))
	f("503", setting{}, attempts(503))
	f("429", setting{}, attempts(429))
}
