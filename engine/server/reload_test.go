package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/server"
)

// post posts in a loop until stop is called, from clients of which half make a new
// connection for each request. The test fails if a request does. wait waits for a few
// requests.
func post(t *testing.T, url string) (wait, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var requests atomic.Int64
	did := make(chan struct{}, 1)
	var wg sync.WaitGroup
	for i := range 4 {
		tr := &http.Transport{DisableKeepAlives: i%2 == 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		c := &http.Client{Transport: tr, Timeout: time.Minute}
		wg.Go(func() {
			defer tr.CloseIdleConnections()
			for ctx.Err() == nil {
				// Go's client sends this body only once: it does not hide a failure.
				resp, err := c.Post(url, "text/plain", io.MultiReader(strings.NewReader("x")))
				if err != nil {
					t.Errorf("a request failed: %v", err)
				}
				if err == nil {
					if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("got status %d, %v", resp.StatusCode, err)
					}
					resp.Body.Close()
				}
				requests.Add(1)
				select {
				case did <- struct{}{}:
				default:
				}
			}
		})
	}
	wait = func() {
		for n := requests.Load(); requests.Load() < n+4; {
			<-did
		}
	}
	return wait, func() {
		cancel()
		wg.Wait()
	}
}

// TestHundredReloads: no connection is refused and no request fails while the arguments
// change a hundred times, unless the address does.
func TestHundredReloads(t *testing.T) {
	f := func(name string, protect *server.TLS, edit func(i int, a *server.Arguments)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			v := serve(t, hello, func(a *server.Arguments) { a.HTTP.TLS = protect })
			address, url := v.s.Address(), "http://"
			if protect != nil {
				url = "https://"
			}
			wait, stop := post(t, url+address)
			defer stop()
			for i := range 100 {
				v.applied(func(a *server.Arguments) { edit(i, a) })
				wait()
			}
			if got := v.s.Address(); got != address {
				t.Errorf("it listens on %s, and listened on %s before", got, address)
			}
		})
	}
	f("the same arguments", nil, func(int, *server.Arguments) {})
	f("a limit of connections", nil, func(i int, a *server.Arguments) { a.HTTP.ConnLimit = 100 + i })
	f("timeouts", nil, func(i int, a *server.Arguments) { a.HTTP.IdleTimeout = time.Duration(i+1) * time.Minute })
	var protect [2]server.TLS
	for i := range protect {
		cert, key := pair(t, "127.0.0.1")
		protect[i] = server.TLS{Cert: cert, Key: component.Secret(key)}
	}
	f("certificates", &protect[0], func(i int, a *server.Arguments) { a.HTTP.TLS = &protect[i%2] })
	f("timeouts with TLS", &protect[0], func(i int, a *server.Arguments) { a.HTTP.ReadTimeout = time.Duration(i+1) * time.Minute })
}

// TestAnotherHostCannotBeOpened: an address with the same port that cannot be opened
// leaves the old one open.
func TestAnotherHostCannotBeOpened(t *testing.T) {
	v := serve(t, hello, onAside(t))
	old := v.s.Address()
	f := func(host, want string) {
		t.Helper()
		v.applied(func(a *server.Arguments) { a.HTTP.ListenAddress = host })
		if h := v.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, want) || !strings.Contains(h.Message, old) {
			t.Errorf("got health %+v, want %q and %s in it", h, want, old)
		}
		wantGet(t, "http://"+old, "hello HTTP/1.1")
	}
	f("192.0.2.1", "cannot assign requested address") // of nobody: RFC 5737
	_, port, err := net.SplitHostPort(old)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Skip("the host has one loopback address: ", err)
	}
	defer other.Close()
	f("0.0.0.0", "in use")
}
