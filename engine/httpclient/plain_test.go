package httpclient_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
)

// clients are one that makes plain requests by itself, and Prometheus's.
func clients(t *testing.T) (plain, prometheus *http.Client) {
	t.Helper()
	for _, c := range []**http.Client{&plain, &prometheus} {
		var a httpclient.Arguments
		a.SetToDefault()
		var err error
		if *c, err = httpclient.NewClient(&a); err != nil {
			t.Fatal(err)
		}
		if c == &plain {
			a.Plain(*c, nil)
		}
		t.Cleanup((*c).CloseIdleConnections)
	}
	return plain, prometheus
}

// rawServer answers each request on a connection with the next of the texts,
// then closes it. conns counts the connections.
func rawServer(t *testing.T, answers ...string) (url string, conns *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int32)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			wg.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for _, a := range answers {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					io.WriteString(c, a)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return "http://" + l.Addr().String(), conns
}

// outcome is a client's view of a response.
type outcome struct {
	Status string
	Header http.Header
	Length int64
	Body   string
	Err    bool
}

func get(c *http.Client, url string) (o outcome) {
	resp, err := c.Get(url)
	if err != nil {
		return outcome{Err: true}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return outcome{resp.Status, resp.Header, resp.ContentLength, string(b), err != nil}
}

// TestPlainAsTransport gives both clients the same answers.
func TestPlainAsTransport(t *testing.T) {
	f := func(name string, answers ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			for try := 1; ; try++ {
				plain, prometheus := clients(t)
				url, conns := rawServer(t, answers...)
				play := func(c *http.Client) (os []outcome) {
					for range answers {
						os = append(os, get(c, url))
					}
					return os
				}
				got := play(plain)
				gotConns := conns.Swap(0)
				want := play(prometheus)
				wantConns := conns.Load()
				d := cmp.Diff(want, got)
				if d == "" && gotConns == wantConns {
					return
				}
				// http.Transport uses no connection again whose goroutine has
				// not said within 50 ms that it has written a request, and the
				// machine may be busy.
				if try < 5 && wantConns > gotConns {
					continue
				}
				t.Fatalf("it took %d connections, Prometheus's client %d (-Prometheus's client +plain):\n%s", gotConns, wantConns, d)
			}
		})
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	f("length", ok+"Content-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello", ok+"Content-Length: 2\r\n\r\nyo")
	f("no length", ok+"\r\nuntil the end")
	f("empty", ok+"Content-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", ok+"Content-Length: 1\r\n\r\nx")
	f("chunked", ok+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", ok+"Content-Length: 1\r\n\r\nx")
	f("chunked with a trailer", ok+"Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: v\r\n\r\n", ok+"Content-Length: 1\r\n\r\nx")
	f("chunked and cut off", ok+"Transfer-Encoding: chunked\r\n\r\n3\r\nab")
	f("broken chunk", ok+"Transfer-Encoding: chunked\r\n\r\nzz\r\nab")
	f("cut off", ok+"Content-Length: 50\r\n\r\nhello")
	f("close", ok+"Content-Length: 2\r\nConnection: close\r\n\r\nyo")
	f("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nyo")
	f("1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nyo", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nyo")
	f("interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+ok+"Content-Length: 2\r\n\r\nyo")
	f("interim without end", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 6))
	f("status", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nRetry-After: 3\r\n\r\nbusy")
	f("cut off in the head", ok+"Content-Le")
	f("no answer", "")
	f("no HTTP", "SSH-2.0-OpenSSH\r\n\r\n")
	f("two lengths", ok+"Content-Length: 2\r\nContent-Length: 3\r\n\r\nyo")
	f("bad header", ok+"a b: c\r\n\r\n")
	f("more than was asked for", ok+"Content-Length: 2\r\n\r\nyo"+ok)
	f("gzip", ok+"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nyo") // it is the caller's
	f("redirect", "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", ok+"Content-Length: 2\r\n\r\nyo")
	f("switching", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n")
	f("long head", ok+"X: "+strings.Repeat("x", 11<<20)+"\r\n\r\n")
}

// TestPlainRequests compares what arrives at a real server.
func TestPlainRequests(t *testing.T) {
	type arrived struct {
		Method, URI, Host, Body string
		Length                  int64
		Encoding                []string
		Header                  http.Header
	}
	var got arrived
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = arrived{r.Method, r.RequestURI, r.Host, string(b), r.ContentLength, r.TransferEncoding, r.Header}
	}))
	t.Cleanup(srv.Close)
	plain, prometheus := clients(t)
	f := func(method, path string, body func() io.Reader, header http.Header) {
		t.Helper()
		do := func(c *http.Client) arrived {
			req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, body())
			if err != nil {
				t.Fatal(err)
			}
			req.Header = header.Clone()
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return got
		}
		want := do(prometheus)
		for range 2 { // on a new connection and on one that was used
			if d := cmp.Diff(want, do(plain)); d != "" {
				t.Errorf("%s %s (-Prometheus's client +plain):\n%s", method, path, d)
			}
		}
	}
	none := func() io.Reader { return nil }
	f("GET", "/metrics?a=b&c=%20d", none, http.Header{"Accept": {"text/plain"}, "User-Agent": {"weir/test"}})
	f("GET", "", none, http.Header{})
	f("POST", "/w", func() io.Reader { return strings.NewReader("hello") }, http.Header{"X-A": {"1", "2"}})
	f("POST", "/w", func() io.Reader { return bytes.NewReader(make([]byte, 2<<20)) }, http.Header{})
	f("POST", "/w", func() io.Reader { return io.MultiReader(strings.NewReader("of no"), strings.NewReader(" length")) }, http.Header{})
}

// TestPlainStale: a server closes a connection that nobody uses, which is
// noticed when it is used again. No request fails for that.
func TestPlainStale(t *testing.T) {
	f := func(method string, body func() io.Reader) {
		t.Helper()
		plain, _ := clients(t)
		url, conns := rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nyo")
		for range 3 {
			req, err := http.NewRequestWithContext(t.Context(), method, url, body())
			if err != nil {
				t.Fatal(err)
			}
			resp, err := plain.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); string(b) != "yo" || err != nil {
				t.Errorf("%s: got %q, %v", method, b, err)
			}
			resp.Body.Close()
		}
		if n := conns.Load(); n != 3 {
			t.Errorf("%s: %d connections, want 3", method, n)
		}
	}
	f("GET", func() io.Reader { return nil })
	f("POST", func() io.Reader { return strings.NewReader("hello") })
	f("POST", func() io.Reader { return bytes.NewReader(make([]byte, 4<<20)) })
}

// TestPlainEarlyAnswer: a server refuses a request of which it has read
// nothing, and closes.
func TestPlainEarlyAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		http.ReadRequest(in)
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		io.Copy(io.Discard, in) // as servers do for a while, or a reset would overtake the answer
	}()
	plain, _ := clients(t)
	resp, err := plain.Post("http://"+l.Addr().String(), "", bytes.NewReader(make([]byte, 4<<20)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("got %s", resp.Status)
	}
	<-done
}

// TestPlainCancel ends a request's context while its answer is waited for, in
// the head and in the body: the error is the context's cause.
func TestPlainCancel(t *testing.T) {
	f := func(head string) {
		t.Helper()
		reached := make(chan struct{})
		over := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if head != "" {
				io.WriteString(w, head)
				http.NewResponseController(w).Flush()
			}
			close(reached)
			<-r.Context().Done() // the connection was closed
			close(over)
		}))
		defer srv.Close()
		plain, _ := clients(t)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-reached; cancel(cause) }()
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := plain.Do(req)
		if err == nil {
			var b []byte
			b, err = io.ReadAll(resp.Body)
			if string(b) != head {
				t.Errorf("got %q of %q", b, head)
			}
			resp.Body.Close()
		}
		if !errors.Is(err, cause) {
			t.Errorf("after %q: got %v, want %v", head, err, cause)
		}
		<-over
	}
	f("")
	f("hello")
}

// TestPlainOnly: who asks for more than to make requests gets Prometheus's
// client, and so does who asks for https.
func TestPlainOnly(t *testing.T) {
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	defer tls.Close()
	var a httpclient.Arguments
	a.SetToDefault()
	a.TLSConfig.InsecureSkipVerify = true
	c, err := httpclient.NewClient(&a)
	if err != nil {
		t.Fatal(err)
	}
	was := c.Transport
	a.Plain(c, nil)
	defer c.CloseIdleConnections()
	if c.Transport == was {
		t.Error("plain requests go by Prometheus's client")
	}
	if o := get(c, tls.URL); o.Err || o.Body == "" {
		t.Errorf("https: got %+v", o)
	}
	f := func(name string, change func(*httpclient.Arguments)) {
		t.Helper()
		var a httpclient.Arguments
		a.SetToDefault()
		change(&a)
		c := &http.Client{}
		if a.Plain(c, nil); c.Transport != nil {
			t.Errorf("with %s requests are made plainly", name)
		}
	}
	f("basic_auth", func(a *httpclient.Arguments) { a.BasicAuth = &httpclient.BasicAuth{} })
	f("authorization", func(a *httpclient.Arguments) { a.Authorization = &httpclient.Authorization{} })
	f("oauth2", func(a *httpclient.Arguments) { a.OAuth2 = &httpclient.OAuth2{} })
	f("bearer_token", func(a *httpclient.Arguments) { a.BearerToken = "x" })
	f("bearer_token_file", func(a *httpclient.Arguments) { a.BearerTokenFile = "x" })
	f("http_headers", func(a *httpclient.Arguments) { a.HTTPHeaders = map[string][]component.Secret{"A": nil} })
	f("proxy_url", func(a *httpclient.Arguments) { a.Proxy.ProxyURL = "http://x" })
	f("proxy_from_environment", func(a *httpclient.Arguments) { a.Proxy.ProxyFromEnvironment = true })
}

// TestPlainConcurrently has many requests share the connections.
func TestPlainConcurrently(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, b)
	}))
	t.Cleanup(srv.Close)
	plain, _ := clients(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 50 {
				body := fmt.Sprint(k)
				resp, err := plain.Post(fmt.Sprintf("%s/%d", srv.URL, i), "", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if want := fmt.Sprintf("/%d %s", i, body); string(b) != want || err != nil {
					t.Errorf("got %q, %v, want %q", b, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestPlainBody: a request's body cannot be read, or is not as long as was said.
// Nobody waits for an answer to that.
func TestPlainBody(t *testing.T) {
	f := func(length int64, body io.Reader) {
		t.Helper()
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
		defer srv.Close()
		plain, _ := clients(t)
		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		if resp, err := plain.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("%d bytes: got %s, want an error", length, resp.Status)
		}
	}
	broken := errors.New("broken")
	f(5, iotest.ErrReader(broken))
	f(5, strings.NewReader("hell"))
	f(1<<20, iotest.ErrReader(broken))
	f(1<<20, strings.NewReader(strings.Repeat("x", 1<<20-1)))
	f(-1, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)))
}

// TestPlainDial: the context ends before there is a connection. The error is its
// cause.
func TestPlainDial(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	plain, _ := clients(t)
	var a httpclient.Arguments
	a.Plain(plain, func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel(cause)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	req, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Do(req); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// TestPlainClose: connections that are in use when the idle ones are closed are
// closed after that.
func TestPlainClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closing := make(chan struct{})
	over := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			over <- err
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		http.ReadRequest(in)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ny")
		<-closing
		io.WriteString(c, "o")
		_, err = in.ReadByte()
		over <- err
	}()
	plain, _ := clients(t)
	resp, err := plain.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	plain.CloseIdleConnections()
	close(closing)
	if b, err := io.ReadAll(resp.Body); string(b) != "yo" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if err := <-over; err != io.EOF {
		t.Errorf("the server read: %v, want the end", err)
	}
}

// TestPlainHost compares the addresses that both clients dial.
func TestPlainHost(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		dialled := errors.New("dialled")
		got := make(chan string, 1)
		dial := func(_ context.Context, _, address string) (net.Conn, error) {
			got <- address
			return nil, dialled
		}
		for _, makePlain := range []bool{false, true} {
			var a httpclient.Arguments
			a.SetToDefault()
			c, err := httpclient.NewClient(&a, config.WithDialContextFunc(dial))
			if err != nil {
				t.Fatal(err)
			}
			if makePlain {
				a.Plain(c, dial)
			}
			if _, err := c.Get(url); !errors.Is(err, dialled) {
				t.Fatalf("%s: got %v", url, err)
			}
			if g := <-got; g != want {
				t.Errorf("%s: plain %v: dials %q, want %q", url, makePlain, g, want)
			}
		}
	}
	f("http://a.example", "a.example:80")
	f("http://a.example:9100/metrics", "a.example:9100")
	f("http://me:secret@a.example:9100/", "a.example:9100")
	f("http://[::1]/", "[::1]:80")
	f("http://[::1]:9100/", "[::1]:9100")
	f("http://[fe80::1%25eth0]:9100/", "[fe80::1%eth0]:9100")
	f("http://bücher.example/", "xn--bcher-kva.example:80")
}
