package egress_test

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/grant"
)

// TestMain is also the programs that tests of commands run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "program" {
		program(os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

func patterns(t *testing.T, texts ...string) (us []grant.URL) {
	t.Helper()
	for _, s := range texts {
		u, err := grant.ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		us = append(us, u)
	}
	return us
}

func newClient(t *testing.T, o egress.Options) *egress.Client {
	t.Helper()
	c, err := egress.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve returns a server on loopback.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// request makes a request and returns the status and the body, or the error.
func request(t *testing.T, c *egress.Client, r *egress.Request) string {
	t.Helper()
	if r.MaxBody == 0 {
		r.MaxBody = 1 << 20
	}
	resp, err := c.Do(t.Context(), r)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.Status, resp.Body)
}

func denied(err error) bool {
	_, ok := errors.AsType[*egress.DeniedError](err)
	return ok
}

// answers is a network on which every host is there.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func ok(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok")), Request: r}, nil
}

func TestAddresses(t *testing.T) {
	f := func(pattern, to string, want bool) {
		t.Helper()
		c := newClient(t, egress.Options{Granted: patterns(t, pattern), Transport: answers(ok)})
		_, err := c.Do(t.Context(), &egress.Request{URL: to, MaxBody: 10})
		if (err == nil) != want || err != nil && !denied(err) {
			t.Errorf("%s by %s: got %v, want %v", to, pattern, err, want)
		}
	}
	const all = "http://*:*/*"
	f(all, "http://1.1.1.1/", true)
	f(all, "http://[2606:4700::1]/", true)
	// Private: only who names it.
	for _, a := range []string{
		"127.0.0.1", "127.8.9.10", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "198.18.0.1",
		"[::1]", "[fd12::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::1]", "[::7f00:1]",
	} {
		f(all, "http://"+a+"/", false)
		f("http://"+a+"/*", "http://"+a+"/", true)
		f("http://"+a+":80/*", "http://"+a+":81/", false)
	}
	// Link-local, metadata, no single host: only by the address.
	for _, a := range []string{
		"169.254.169.254", "169.254.0.1", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "0.0.0.0", "[::]",
		"224.0.0.1", "255.255.255.255", "240.0.0.1", "[ff02::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]",
	} {
		f(all, "http://"+a+"/", false)
		f("http://"+a+"/*", "http://"+a+"/", true)
	}
	f("http://169.254.169.254/latest/*", "http://169.254.169.254/latest/x", true)
	f("http://169.254.169.254/latest/*", "http://169.254.169.254/other", false)
}

func TestGrants(t *testing.T) {
	f := func(o egress.Options, to string, want string) {
		t.Helper()
		o.Transport = answers(ok)
		if got := request(t, newClient(t, o), &egress.Request{URL: to}); got != want {
			t.Errorf("%s: got %s, want %s", to, got, want)
		}
	}
	o := egress.Options{Granted: patterns(t, "https://geo.internal/*", "https://*.example.com/v1/*"), Needed: patterns(t, "https://geo.internal/v1/*", "https://*.example.com/*")}
	f(o, "https://geo.internal/v1/x?a=b", "200 ok")
	f(o, "https://a.example.com/v1/x", "200 ok")
	f(o, "https://geo.internal/v2/?token=x", "cannot ask https://geo.internal/v2/: the script's needs.http does not name it")
	f(o, "https://a.example.com/v2/", "cannot ask https://a.example.com/v2/: script.allow.http does not grant it")
	f(o, "http://geo.internal/v1/x", "cannot ask http://geo.internal/v1/x: script.allow.http does not grant it")
	f(o, "https://geo.internal/v1/../x", `cannot request "https://geo.internal/v1/../x": its path has . or .. as a part, write the path that is meant`)
	f(o, "https://u:p@geo.internal/v1/x", `cannot request "https://geo.internal/v1/x": it has a user in it, give basic = { username =, password = } instead`)
	f(o, "file:///etc/passwd", `cannot request "file:///etc/passwd": it must begin with http:// or https://`)
	f(o, "https://geo.internal/v1/\nx", "cannot ask this URL: it has a control character in it")
	f(o, "https://geo.internal/%zz?secret", "cannot ask this URL: it cannot be read")
}

func TestRequests(t *testing.T) {
	var got *http.Request
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.Header().Add("X-Twice", "a")
		w.Header().Add("X-Twice", "b")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "short")
	})
	c := newClient(t, egress.Options{Granted: patterns(t, s.URL+"/*")})
	resp, err := c.Do(t.Context(), &egress.Request{
		Method: "PUT", URL: s.URL + "/x?q=1#f", Body: []byte("in"), MaxBody: 5,
		Header: []egress.Header{{"x-one", "1"}, {"X-One", "2"}, {"User-Agent", "mine"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != 418 || string(resp.Body) != "short" || resp.URL != s.URL+"/x" || strings.Join(resp.Header["X-Twice"], ",") != "a,b" {
		t.Errorf("got %+v", resp)
	}
	if got.Method != "PUT" || got.URL.RequestURI() != "/x?q=1" || body != "in" || strings.Join(got.Header["X-One"], ",") != "1,2" {
		t.Errorf("the server got %s %s %q %v", got.Method, got.URL, body, got.Header)
	}
	f := func(r egress.Request, want string) {
		t.Helper()
		r.URL = s.URL
		if got := request(t, c, &r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(egress.Request{Method: "get"}, `cannot use "get" as method: there is GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`)
	f(egress.Request{Method: "CONNECT"}, `cannot use "CONNECT" as method: there is GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`)
	f(egress.Request{Header: []egress.Header{{"X-A", "b\r\nHost: evil"}}}, "cannot use this value of the header X-A: it has a line feed or another control character in it")
	f(egress.Request{Header: []egress.Header{{"X A", "b"}}}, `cannot use "X A" as the name of a header`)
	f(egress.Request{Header: []egress.Header{{"X-A\r\nY", "b"}}}, `cannot use "X-A\r\nY" as the name of a header`)
	f(egress.Request{Header: []egress.Header{{"host", "b"}}}, "cannot set the header Host: the client does that itself")
	f(egress.Request{Header: []egress.Header{{"transfer-encoding", "chunked"}}}, "cannot set the header Transfer-Encoding: the client does that itself")
	f(egress.Request{MaxBody: 4}, "cannot ask "+s.URL+": it is too large: the answer has more than 4 bytes, the limit is max_bytes")
	f(egress.Request{Method: "HEAD"}, "418 ")
}

func TestBodies(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip", "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			if r.Method == "HEAD" {
				return
			}
			z := gzip.NewWriter(w)
			if r.URL.Path == "/gzip" {
				fmt.Fprint(z, "unpacked for "+r.Header.Get("Accept-Encoding"))
			} else {
				zeros := make([]byte, 1<<20)
				for range 8 {
					z.Write(zeros)
				}
			}
			z.Close()
		case "/nogzip":
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "this is no gzip at all")
		case "/huge":
			chunk := make([]byte, 64<<10)
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/head":
			for i := range 2000 {
				w.Header().Add(fmt.Sprintf("X-%d", i), strings.Repeat("x", 100))
			}
		case "/hang":
			w.(http.Flusher).Flush()
			close(release)
			<-r.Context().Done()
		}
	})
	c := newClient(t, egress.Options{Granted: patterns(t, s.URL+"/*")})
	f := func(method, path, want string) {
		t.Helper()
		if got := request(t, c, &egress.Request{Method: method, URL: s.URL + path}); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	f("GET", "/gzip", "200 unpacked for gzip")
	f("HEAD", "/gzip", "200 ")
	f("GET", "/bomb", "cannot ask "+s.URL+"/bomb: it is too large: the answer has more than 1048576 bytes, the limit is max_bytes")
	f("GET", "/huge", "cannot ask "+s.URL+"/huge: it is too large: the answer has more than 1048576 bytes, the limit is max_bytes")
	f("GET", "/head", "cannot ask "+s.URL+"/head: it is too large: the header has more than 65536 bytes")
	f("GET", "/nogzip", "cannot ask "+s.URL+"/nogzip: cannot unpack the answer: gzip: invalid header")

	// A body that does not end, ends with the context.
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-release
		cancel(errors.New("the source gave up"))
	}()
	_, err := c.Do(ctx, &egress.Request{URL: s.URL + "/hang", MaxBody: 10})
	if err == nil || err.Error() != "cannot ask "+s.URL+"/hang: the source gave up" {
		t.Errorf("got %v", err)
	}
}

func TestRedirects(t *testing.T) {
	seen := map[string]string{}
	var mu sync.Mutex
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen[r.URL.Path] = fmt.Sprintf("%s %q auth=%q key=%q accept=%q type=%q", r.Method, body, r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("Accept"), r.Header.Get("Content-Type"))
		mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			status := http.StatusFound
			fmt.Sscan(r.URL.Query().Get("status"), &status)
			http.Redirect(w, r, to, status)
		}
	}
	near, far := serve(t, handler), serve(t, handler)
	c := newClient(t, egress.Options{Granted: patterns(t, near.URL+"/*", far.URL+"/ok/*", "http://*/*")})
	f := func(method, status, to, want, saw string) {
		t.Helper()
		mu.Lock()
		clear(seen)
		mu.Unlock()
		r := &egress.Request{
			Method: method, URL: near.URL + "/from?status=" + status + "&to=" + url.QueryEscape(to), Redirects: 3,
			Header: []egress.Header{{"Authorization", "Bearer s3cret"}, {"X-Key", "s3cret"}, {"Accept", "text/x"}},
		}
		if method == "POST" {
			r.Body, r.Header = []byte("in"), append(r.Header, egress.Header{Name: "Content-Type", Value: "text/y"})
		}
		got := request(t, c, r)
		got = strings.ReplaceAll(strings.ReplaceAll(got, near.URL, "NEAR"), far.URL, "FAR")
		if !strings.Contains(got, want) {
			t.Errorf("%s to %s: got %q, want %q", status, to, got, want)
		}
		mu.Lock()
		defer mu.Unlock()
		path := to
		if u, err := url.Parse(to); err == nil {
			path = u.Path
		}
		if saw != seen[path] {
			t.Errorf("%s to %s: %s saw %s, want %s", status, to, path, seen[path], saw)
		}
	}
	f("GET", "302", "/there", "200 ", `GET "" auth="Bearer s3cret" key="s3cret" accept="text/x" type=""`)
	f("POST", "302", "/there", "200 ", `GET "" auth="Bearer s3cret" key="s3cret" accept="text/x" type=""`)
	f("POST", "303", "/there", "200 ", `GET "" auth="Bearer s3cret" key="s3cret" accept="text/x" type=""`)
	f("POST", "307", "/there", "200 ", `POST "in" auth="Bearer s3cret" key="s3cret" accept="text/x" type="text/y"`)
	f("POST", "308", "/there", "200 ", `POST "in" auth="Bearer s3cret" key="s3cret" accept="text/x" type="text/y"`)
	// Another host gets no secrets and no body.
	f("GET", "302", far.URL+"/ok/x", "200 ", `GET "" auth="" key="" accept="text/x" type=""`)
	f("POST", "302", far.URL+"/ok/x", "200 ", `GET "" auth="" key="" accept="text/x" type=""`)
	f("POST", "307", far.URL+"/ok/x", "cannot ask NEAR/from: it redirects a request with a body to another host, FAR/ok/x", "")
	// A URL that is not granted is not requested.
	f("GET", "302", far.URL+"/other", "cannot ask NEAR/from: cannot ask FAR/other: script.allow.http does not grant it", "")
	f("GET", "302", "http://169.254.169.254/latest/meta-data", "cannot ask NEAR/from: cannot connect to 169.254.169.254: it is link-local", "")
	f("GET", "302", "http://[fd00:ec2::254]/", "cannot connect to fd00:ec2::254: it is link-local", "")
	f("GET", "302", "http://10.0.0.1/", "cannot connect to 10.0.0.1: its address 10.0.0.1 is of a private network", "")
	f("GET", "302", "ftp://h/x", "it redirects: cannot request", "")
	f("GET", "302", "//u:p@h/x", "it has a user in it", "")
	f("GET", "302", "/a/../b", "200 ", "") // which is /b, as the server knows
	f("GET", "302", "/a/%2e%2e/b", "its path has . or .. as a part", "")
	loop := near.URL + "/from?to=" + url.QueryEscape("/from?to=%2Ffrom%3Fto%3D%252Ffrom%253Fto%253D%252Fx")
	if got, want := request(t, c, &egress.Request{URL: loop, Redirects: 2}), "cannot ask "+near.URL+"/from: it redirects more than 2 times"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := request(t, c, &egress.Request{URL: loop}); !strings.HasPrefix(got, "302 ") {
		t.Errorf("without redirects: got %q", got)
	}
}

// TestNamedByPath: a host counts as named only if the pattern's path matches as
// well. A second pattern with a star, or a kept connection, does not change
// that.
func TestNamedByPath(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	c := newClient(t, egress.Options{Granted: patterns(t, s.URL+"/health", "http://*:*/public/*")})
	for range 2 {
		if got := request(t, c, &egress.Request{URL: s.URL + "/health"}); got != "200 /health" {
			t.Errorf("got %s", got)
		}
		if got := request(t, c, &egress.Request{URL: s.URL + "/public/x"}); !strings.Contains(got, "is of a private network") {
			t.Errorf("got %s", got)
		}
	}
	other := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	c = newClient(t, egress.Options{Granted: patterns(t, s.URL+"/x", other.URL+"/y")})
	if got := request(t, c, &egress.Request{URL: s.URL + "/y"}); !strings.Contains(got, "does not grant it") {
		t.Errorf("got %s", got)
	}
}

// TestRebinding holds that it is the address that is connected to that counts,
// not one that the name had before.
func TestRebinding(t *testing.T) {
	var rebound atomic.Bool
	address := func(string) string {
		if rebound.Load() {
			return "169.254.169.254"
		}
		return "127.0.0.1"
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "hello")
	})
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resolver := resolve(t, address)
	named := newClient(t, egress.Options{Granted: patterns(t, "http://once.test:"+port+"/*"), Resolver: resolver})
	if got := request(t, named, &egress.Request{URL: "http://once.test:" + port}); got != "200 hello" {
		t.Fatalf("the first time: got %q", got)
	}
	rebound.Store(true)
	if got := request(t, named, &egress.Request{URL: "http://once.test:" + port}); !strings.Contains(got, "its address 169.254.169.254 is link-local") {
		t.Errorf("the second time: got %q", got)
	}
	rebound.Store(false)
	stars := newClient(t, egress.Options{Granted: patterns(t, "http://*.test.example:*/*", "http://*:"+port+"/*"), Resolver: resolver})
	if got := request(t, stars, &egress.Request{URL: "http://any.test:" + port}); !strings.Contains(got, "its address 127.0.0.1 is of a private network, which only a pattern that names the host grants") {
		t.Errorf("by a star: got %q", got)
	}
}

// resolve returns a resolver that uses a server of the test, which knows only
// the names *.test, and not those that a search list adds.
func resolve(t *testing.T, address func(name string) string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(r)
		switch q := r.Question[0]; {
		case dns.CountLabel(q.Name) != 2 || !strings.HasSuffix(q.Name, ".test."):
			m.Rcode = dns.RcodeNameError
		case q.Qtype == dns.TypeA:
			rr, err := dns.NewRR(q.Name + " 0 IN A " + address(q.Name))
			if err == nil {
				m.Answer = append(m.Answer, rr)
			}
		}
		_ = w.WriteMsg(m)
	})}
	done := make(chan error, 1)
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	go func() { done <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	defer s.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	f := func(settings httpclient.Arguments, want string) {
		t.Helper()
		c := newClient(t, egress.Options{Granted: patterns(t, s.URL+"/*"), Settings: settings})
		if got := request(t, c, &egress.Request{URL: s.URL}); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(httpclient.Arguments{}, "certificate signed by unknown authority")
	f(httpclient.Arguments{TLSConfig: httpclient.TLSConfig{CA: ca}}, "200 HTTP/1.1")
	f(httpclient.Arguments{TLSConfig: httpclient.TLSConfig{CA: ca, ServerName: "other.test"}}, "not other.test")
	f(httpclient.Arguments{TLSConfig: httpclient.TLSConfig{InsecureSkipVerify: true}}, "200 HTTP/1.1")

	// It does not go back to plaintext.
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked in plaintext") })
	down := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/x", http.StatusFound))
	defer down.Close()
	c := newClient(t, egress.Options{Granted: patterns(t, down.URL+"/*", plain.URL+"/*"), Settings: httpclient.Arguments{TLSConfig: httpclient.TLSConfig{InsecureSkipVerify: true}}})
	if got, want := request(t, c, &egress.Request{URL: down.URL, Redirects: 1}), "it redirects from https to "+plain.URL+"/x"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProxy(t *testing.T) {
	var got []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.String())
		if r.URL.Host == "away.test" {
			http.Redirect(w, r, "http://169.254.169.254/x", http.StatusFound)
		}
	})
	c := newClient(t, egress.Options{
		Granted:  patterns(t, "http://*/*", "http://*.test/*", "http://10.0.0.1/*"),
		Settings: httpclient.Arguments{Proxy: httpclient.Proxy{ProxyURL: proxy.URL, NoProxy: "direct.test"}},
		Resolver: resolve(t, func(string) string { return "127.0.0.1" }),
	})
	f := func(to, want string) {
		t.Helper()
		if got := request(t, c, &egress.Request{URL: to, Redirects: 1}); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", to, got, want)
		}
	}
	f("http://any.test/x", "200 ") // at the proxy's address, which is private
	f("http://10.0.0.1/x", "200 ")
	f("http://10.0.0.2/x", "is of a private network")
	f("http://169.254.169.254/x", "it is link-local")
	f("http://metadata.google.internal/x", "it is a cloud's metadata")
	f("http://away.test/", "it is link-local")
	f("http://direct.test/", "its address 127.0.0.1 is of a private network")
	if diff := cmp.Diff([]string{"http://any.test/x", "http://10.0.0.1/x", "http://away.test/"}, got); diff != "" {
		t.Errorf("the proxy saw (-want +got):\n%s", diff)
	}
}

// TestInFlight holds that no more requests are under way at once than a client
// may have, and that all come through.
func TestInFlight(t *testing.T) {
	const bound = 32
	var now, most, served atomic.Int64
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) }) // later ones may be as many again
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == bound {
			fill()
		}
		<-full
		served.Add(1)
		now.Add(-1)
	})
	c := newClient(t, egress.Options{Granted: patterns(t, s.URL+"/*")})
	var wg sync.WaitGroup
	for range 2 * bound {
		wg.Go(func() {
			if got := request(t, c, &egress.Request{URL: s.URL}); got != "200 " {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
	if most.Load() > bound || served.Load() != 2*bound {
		t.Errorf("%d were under way at once, %d were served", most.Load(), served.Load())
	}
}

// TestReuse holds that a connection serves the next request, but where a busy
// machine made it late, and that Close closes those that nobody uses.
func TestReuse(t *testing.T) {
	var made atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, egress.Options{Granted: patterns(t, s.URL+"/*")})
	for range 20 {
		request(t, c, &egress.Request{URL: s.URL})
	}
	if made.Load() > 10 {
		t.Errorf("%d connections for 20 requests", made.Load())
	}
}
