package http_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	remotehttp "github.com/weir-run/weir/natives/remote/http"
)

// server returns a configured response and stores the last request.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	answer  func(w http.ResponseWriter, r *http.Request)
	last    *http.Request
	body    string
	polls   int
	arrived chan struct{} // capacity 100: one value per poll
}

func newServer(t *testing.T) *server {
	s := &server{arrived: make(chan struct{}, 100)}
	s.serveText("hello")
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.last, s.body = r, string(b)
		s.polls++
		answer := s.answer
		s.mu.Unlock()
		defer func() { s.arrived <- struct{}{} }()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) does(f func(w http.ResponseWriter, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *server) serveText(text string) {
	s.does(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

func (s *server) request() (*http.Request, string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.body, s.polls
}

func (s *server) arguments(t *testing.T, body string) *remotehttp.Arguments {
	t.Helper()
	return componenttest.Arguments[*remotehttp.Arguments](t, remotehttp.Registration(), fmt.Sprintf("url = %q\n%s", s.URL+"/x", body))
}

type node interface {
	component.Component
	component.Updater
}

// build returns a running component that has polled.
func build(t *testing.T, s *server, body string) (*componenttest.Node, node) {
	t.Helper()
	n := componenttest.New(t, "remote.http.h")
	c := n.Build(t, remotehttp.Registration(), s.arguments(t, body)).(node)
	n.Run(t, c)
	polled(t, s, n)
	return n, c
}

// polled waits until a poll has been reported.
func polled(t *testing.T, s *server, n *componenttest.Node) {
	t.Helper()
	<-s.arrived
	if err := n.Clock.WaitTimers(t.Context(), 1); err != nil { // set again afterwards
		t.Fatal(err)
	}
}

// pass advances the clock until one poll has been reported.
func pass(t *testing.T, s *server, n *componenttest.Node, d time.Duration) {
	t.Helper()
	if err := n.Clock.WaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	n.Clock.Advance(d)
	polled(t, s, n)
}

// change updates c and waits for a poll.
func change(t *testing.T, s *server, n *componenttest.Node, c node, body string) {
	t.Helper()
	if err := c.Update(s.arguments(t, body)); err != nil {
		t.Fatal(err)
	}
	polled(t, s, n)
}

func wantContent(t *testing.T, n *componenttest.Node, secret bool, value string) {
	t.Helper()
	want := remotehttp.Exports{Content: component.OptionalSecret{IsSecret: secret, Value: value}}
	if diff := cmp.Diff(any(want), n.Exports()); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}
}

func TestContent(t *testing.T) {
	s := newServer(t)
	s.serveText("\n hello \n")
	n, _ := build(t, s, "")
	wantContent(t, n, false, "hello")
	if n.Health().State != component.Healthy {
		t.Errorf("got health %+v", n.Health())
	}
	s.serveText("world")
	pass(t, s, n, time.Minute)
	wantContent(t, n, false, "world")
}

func TestRequest(t *testing.T) {
	s := newServer(t)
	n, _ := build(t, s, `
		is_secret = true
		method = "POST"
		body = "question"
		headers = { "X-Token" = "t", host = "elsewhere" }
		client {
			basic_auth {
				username = "u"
				password = "p"
			}
		}`)
	wantContent(t, n, true, "hello")
	r, body, _ := s.request()
	user, pass, _ := r.BasicAuth()
	got := []string{r.Method, r.URL.Path, body, r.Header.Get("X-Token"), r.Host, user, pass, r.UserAgent()}
	if diff := cmp.Diff([]string{"POST", "/x", "question", "t", "elsewhere", "u", "p", "weir/test"}, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestUserAgentOfHeaders(t *testing.T) {
	s := newServer(t)
	build(t, s, `headers = { "User-Agent" = "mine" }`)
	if r, _, _ := s.request(); r.UserAgent() != "mine" {
		t.Errorf("got user agent %q", r.UserAgent())
	}
}

// TestNotModified: content is only transferred again if it changed.
func TestNotModified(t *testing.T) {
	f := func(name, value, ask string) {
		t.Helper()
		s := newServer(t)
		answers := 0
		s.does(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(ask) == value {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			answers++
			w.Header().Set(name, value)
			fmt.Fprint(w, "hello")
		})
		n, c := build(t, s, "")
		pass(t, s, n, time.Minute)
		wantContent(t, n, false, "hello")
		if n.Health().State != component.Healthy || answers != 1 {
			t.Errorf("%s: %d answers, health %+v", name, answers, n.Health())
		}
		// Other arguments cause a new request, because the exported value may
		// differ.
		change(t, s, n, c, "is_secret = true")
		wantContent(t, n, true, "hello")
		if answers != 2 {
			t.Errorf("%s: %d answers after other arguments, want 2", name, answers)
		}
	}
	f("ETag", `"v1"`, "If-None-Match")
	f("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT", "If-Modified-Since")
}

func TestFaults(t *testing.T) {
	f := func(want string, answer func(w http.ResponseWriter, r *http.Request)) {
		t.Helper()
		s := newServer(t)
		n, c := build(t, s, "poll_timeout = \"59s\"")
		s.does(answer)
		pass(t, s, n, time.Minute)
		wantContent(t, n, false, "hello")
		h := n.Health()
		if h.State != component.Unhealthy || !strings.Contains(h.Message, want) || !strings.Contains(h.Message, s.URL) {
			t.Errorf("got health %+v, want %q", h, want)
		}
		// If other arguments fail too, the content stays, and the request is
		// retried soon.
		change(t, s, n, c, "poll_timeout = \"59s\"\nis_secret = true")
		wantContent(t, n, false, "hello")
		if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, want) {
			t.Errorf("got health %+v, want %q", h, want)
		}
		s.serveText("again")
		pass(t, s, n, time.Second)
		wantContent(t, n, true, "again")
		if logs := n.Logs(); strings.Count(logs, "level=ERROR") != 1 || strings.Count(logs, "answers again") != 1 {
			t.Errorf("%s: logged:\n%s", want, logs)
		}
		if h := n.Health(); h.State != component.Healthy {
			t.Errorf("got health %+v", h)
		}
	}
	f("answered 500 Internal Server Error, want 200 OK", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", 500) })
	f("answered 304 Not Modified", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	f("more than the 16777216 bytes allowed", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 17<<20)) // ends when the client stops reading
	})
	f("unexpected EOF", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "short")
	})
	f("EOF", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

// TestTimeout: a busy machine may use up the timeout before the server is
// reached.
func TestTimeout(t *testing.T) {
	s := newServer(t)
	n, c := build(t, s, "poll_timeout = \"59s\"")
	s.does(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	update := func(body string) {
		t.Helper()
		if err := c.Update(s.arguments(t, body)); err != nil {
			t.Fatal(err)
		}
	}
	update("poll_timeout = \"100ms\"\nis_secret = true")
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	wantContent(t, n, false, "hello")
	if h := n.Health(); !strings.Contains(h.Message, "no answer within 100ms") || !strings.Contains(h.Message, s.URL) {
		t.Errorf("got health %+v", h)
	}
	s.serveText("again")
	update("poll_timeout = \"59s\"\nis_secret = true")
	n.Wait(t, func() bool { return n.Health().State == component.Healthy })
	wantContent(t, n, true, "again")
	if logs := n.Logs(); strings.Count(logs, "level=ERROR") != 1 || strings.Count(logs, "answers again") != 1 {
		t.Errorf("logged:\n%s", logs)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestFirstPollFails: nothing is exported, and the request is retried soon.
func TestFirstPollFails(t *testing.T) {
	s := newServer(t)
	s.does(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusForbidden) })
	n := componenttest.New(t, "remote.http.h")
	a := s.arguments(t, "poll_frequency = \"5s\"\npoll_timeout = \"4s\"")
	a.URL = strings.Replace(a.URL, "http://", "http://user:pass@", 1) + "?token=secret"
	c := n.Build(t, remotehttp.Registration(), a)
	if _, _, polls := s.request(); polls != 0 {
		t.Error("Build polls")
	}
	n.Run(t, c)
	polled(t, s, n)
	wantFailure := func() {
		t.Helper()
		if h := n.Health(); h.State != component.Unhealthy || h.Message != "cannot poll: "+s.URL+"/x answered 403 Forbidden, want 200 OK" {
			t.Errorf("got health %+v", h)
		}
		if e := n.Exports(); e != nil {
			t.Errorf("got exports %+v", e)
		}
	}
	wantFailure()
	for _, d := range []time.Duration{1, 2, 4, 5, 5} {
		pass(t, s, n, d*time.Second)
		wantFailure()
	}
	s.serveText("hello")
	pass(t, s, n, 5*time.Second)
	wantContent(t, n, false, "hello")
	// From now on at the normal interval, whatever happens.
	s.Close()
	for range 2 {
		n.Clock.Advance(5 * time.Second)
		n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
		if h := n.Health(); strings.Contains(h.Message, "pass") || strings.Contains(h.Message, "secret") {
			t.Errorf("got %q, want an error without secrets", h.Message)
		}
	}
	wantContent(t, n, false, "hello")
}

// TestUpdateWhilePolling: a URL that hangs does not delay another one.
func TestUpdateWhilePolling(t *testing.T) {
	s := newServer(t)
	asked := make(chan struct{}, 1)
	s.does(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	n := componenttest.New(t, "remote.http.h")
	c := n.Build(t, remotehttp.Registration(), s.arguments(t, "poll_frequency = \"1h\"\npoll_timeout = \"59m\"")).(node)
	n.Run(t, c)
	<-asked
	s.serveText("hello")
	if err := c.Update(s.arguments(t, "")); err != nil {
		t.Fatal(err)
	}
	n.Wait(t, func() bool { return n.Exports() != nil })
	wantContent(t, n, false, "hello")
	if h := n.Health(); h.State != component.Unknown && h.State != component.Healthy {
		t.Errorf("got health %+v: what was called off is no failure", h)
	}
}

// TestStopWhilePolling: a URL that hangs does not delay a stop.
func TestStopWhilePolling(t *testing.T) {
	s := newServer(t)
	asked := make(chan struct{}, 1)
	s.does(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	n := componenttest.New(t, "remote.http.h")
	stop := n.Run(t, n.Build(t, remotehttp.Registration(), s.arguments(t, "")))
	<-asked
	stop()
	if h := n.Health(); h.State == component.Unhealthy {
		t.Errorf("got health %+v: a stop is no failure", h)
	}
}

func TestFrequencyChanges(t *testing.T) {
	s := newServer(t)
	n, c := build(t, s, "")
	change(t, s, n, c, "poll_frequency = \"2s\"\npoll_timeout = \"1s\"")
	for range 3 {
		s.serveText(fmt.Sprint(time.Now()))
		pass(t, s, n, 2*time.Second)
	}
}

func TestMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*remotehttp.Arguments](remotehttp.Registration(), body)
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	const u = "url = \"http://h/\"\n"
	f("", "c.alloy:1:1: missing required attribute url")
	f(`url = "ftp://h/"`, "c.alloy:2:1: url must begin with http:// or https:// and a host")
	f(`url = "http://"`, "c.alloy:2:1: url must begin with http:// or https:// and a host")
	f(`url = "http://user:password@h:x/"`, `c.alloy:2:1: cannot parse url: invalid port ":x" after host`)
	f(u+`poll_timeout = "1m"`, "c.alloy:3:1: poll_timeout is 1m0s, must be less than poll_frequency, which is 1m0s")
	f(u+"poll_timeout = \"0s\"\npoll_frequency = \"0s\"", "c.alloy:3:1: poll_timeout is 0s, must be greater than 0\nc.alloy:4:1: poll_frequency is 0s, must be greater than 0")
	f(u+`method = "A B"`, `c.alloy:3:1: method "A B" is no HTTP method`)
	f(u+`headers = { "a b" = "c", "X-D" = "e\nf", ok = "fine" }`, `
c.alloy:3:1: headers: "X-D" is no header, or has a value that cannot be one
c.alloy:3:1: headers: "a b" is no header, or has a value that cannot be one`)
	f(u+"client {\nbearer_token = \"a\"\nbearer_token_file = \"b\"\n}",
		"c.alloy:4:1: at most one of basic_auth, authorization, oauth2, bearer_token and bearer_token_file may be set, not bearer_token and bearer_token_file")
}
