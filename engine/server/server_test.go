package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/server"
)

// served is a server that runs.
type served struct {
	*componenttest.Node
	t    *testing.T
	s    *server.Server
	args server.Arguments
	stop func()
}

// runner makes a Server a component.
type runner struct{ s *server.Server }

func (r runner) Run(ctx context.Context) error { return r.s.Run(ctx) }

func arguments() server.Arguments {
	var a server.Arguments
	a.SetToDefault()
	a.HTTP.ListenAddress, a.HTTP.ListenPort = "127.0.0.1", 0
	return a
}

func serve(t *testing.T, h http.Handler, edit func(*server.Arguments)) *served {
	t.Helper()
	v := &served{Node: componenttest.New(t, "server"), t: t, args: arguments()}
	if edit != nil {
		edit(&v.args)
	}
	o := v.Options()
	s, err := server.New(server.Options{Handler: h, Logger: o.Logger, Clock: o.Clock, Health: o.Health, Setting: func() string { return "listen_address or port in the block http of test (c.alloy:1)" }}, &v.args)
	if err != nil {
		t.Fatal(err)
	}
	v.s = s
	v.stop = v.Run(t, runner{s})
	v.Wait(t, func() bool { return v.Health().State != component.Unknown })
	return v
}

func (v *served) update(edit func(*server.Arguments)) error {
	a := v.args
	edit(&a)
	err := v.s.Update(&a)
	if err == nil {
		v.args = a
	}
	return err
}

// applied updates and waits until that is in effect.
func (v *served) applied(edit func(*server.Arguments)) {
	v.t.Helper()
	before := v.Health()
	v.Clock.Advance(time.Millisecond)
	if err := v.update(edit); err != nil {
		v.t.Fatal(err)
	}
	v.Wait(v.t, func() bool { return v.Health().Time.After(before.Time) })
}

// hello answers with what the test asks for.
var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.Proto) })

// get asks a server once, on a connection of its own.
func get(t *testing.T, url string, edit func(*http.Transport)) (string, error) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	if edit != nil {
		edit(tr)
	}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func wantGet(t *testing.T, url, want string) {
	t.Helper()
	if got, err := get(t, url, nil); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func port(t *testing.T, address string) int {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// aside listens on a port that nobody gets who asks for any (Linux gives those
// from 32768 on): once it is closed it stays free.
func aside(t *testing.T) net.Listener {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10000+mathrand.IntN(20000))); err == nil {
			t.Cleanup(func() { l.Close() })
			return l
		}
	}
	t.Fatal("no port is free")
	return nil
}

// onAside makes the server listen on such a port.
func onAside(t *testing.T) func(*server.Arguments) {
	l := aside(t)
	l.Close()
	return func(a *server.Arguments) { a.HTTP.ListenPort = port(t, l.Addr().String()) }
}

func TestServes(t *testing.T) {
	v := serve(t, hello, onAside(t))
	wantGet(t, "http://"+v.s.Address(), "hello HTTP/1.1")
	if h := v.Health(); h.State != component.Healthy || !strings.Contains(h.Message, v.s.Address()) {
		t.Errorf("got health %+v", h)
	}
	addr := v.s.Address()
	v.stop()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("the port is open after the end")
	}
	if v.s.Address() != "" {
		t.Error("it has an address after the end")
	}
}

// TestSettingsChange: the port stays open, and a request in flight ends.
func TestSettingsChange(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- true
			<-release
		}
		fmt.Fprint(w, "done")
	})
	v := serve(t, slow, func(a *server.Arguments) { a.GracefulShutdownTimeout = time.Hour })
	addr := v.s.Address()
	got := make(chan string, 1)
	go func() {
		b, err := get(t, "http://"+addr+"/slow", nil)
		if err != nil {
			b = err.Error()
		}
		got <- b
	}()
	<-entered
	for i := range 20 {
		v.applied(func(a *server.Arguments) { a.HTTP.IdleTimeout = time.Duration(i+1) * time.Minute })
		if v.s.Address() != addr {
			t.Fatalf("the address is %s, was %s", v.s.Address(), addr)
		}
		wantGet(t, "http://"+addr, "done")
	}
	release <- true
	if b := <-got; b != "done" {
		t.Errorf("the request in flight got %q", b)
	}
}

// TestMoves: the new port is open before the old one closes.
func TestMoves(t *testing.T) {
	v := serve(t, hello, onAside(t))
	old := v.s.Address()
	l := aside(t) // a port to move to, taken for now
	taken := l.Addr().String()
	v.applied(func(a *server.Arguments) { a.HTTP.ListenPort = port(t, taken) })
	h := v.Health()
	for _, want := range []string{taken, "in use", "change listen_address or port in the block http of test (c.alloy:1)", "next try in 250ms", old} {
		if h.State != component.Unhealthy || !strings.Contains(h.Message, want) {
			t.Errorf("got health %+v, want %q in it", h, want)
		}
	}
	wantGet(t, "http://"+old, "hello HTTP/1.1")
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := v.Clock.WaitTimers(ctx, 1); err != nil {
		t.Fatal(err)
	}
	v.Clock.Advance(250 * time.Millisecond)
	v.Wait(t, func() bool { return v.Health().State == component.Healthy })
	wantGet(t, "http://"+taken, "hello HTTP/1.1")
	if c, err := net.Dial("tcp", old); err == nil {
		c.Close()
		t.Error("the old port is still open")
	}
	// The same port with another host is ours to close.
	v.applied(func(a *server.Arguments) { a.HTTP.ListenAddress = "0.0.0.0" })
	v.Wait(t, func() bool { return v.Health().State == component.Healthy })
	wantGet(t, "http://"+taken, "hello HTTP/1.1")
}

func TestPortInUse(t *testing.T) {
	l := aside(t)
	v := serve(t, hello, func(a *server.Arguments) { a.HTTP.ListenPort = port(t, l.Addr().String()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, pause := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		v.Wait(t, func() bool { return strings.Contains(v.Health().Message, "next try in "+pause.String()) })
		if err := v.Clock.WaitTimers(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if pause == time.Second {
			l.Close()
		}
		v.Clock.Advance(pause)
	}
	v.Wait(t, func() bool { return v.Health().State == component.Healthy })
	wantGet(t, "http://"+v.s.Address(), "hello HTTP/1.1")
	if n := strings.Count(v.Logs(), "level=ERROR"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, v.Logs())
	}
}

func TestGracefulShutdown(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	v := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-release
		fmt.Fprint(w, "done")
	}), nil)
	addr := v.s.Address()
	got := make(chan string, 1)
	go func() {
		b, err := get(t, "http://"+addr, nil)
		if err != nil {
			b = err.Error()
		}
		got <- b
	}()
	<-entered
	stopped := make(chan bool)
	go func() { v.stop(); close(stopped) }()
	release <- true
	if b := <-got; b != "done" {
		t.Errorf("got %q", b)
	}
	<-stopped

	// A request that does not end is cut off.
	v = serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- true
		<-r.Context().Done()
	}), func(a *server.Arguments) { a.GracefulShutdownTimeout = time.Millisecond })
	go func() {
		_, err := get(t, "http://"+v.s.Address(), nil)
		got <- fmt.Sprint(err)
	}()
	<-entered
	v.stop()
	if e := <-got; e == "<nil>" {
		t.Error("the request was answered")
	}
}

// reached waits until the limit of connections was reached n times.
func (v *served) reached(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for v.s.LimitReached() != n {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("the limit was reached %d times, want %d", v.s.LimitReached(), n)
		}
	}
}

func TestConnLimit(t *testing.T) {
	v := serve(t, hello, func(a *server.Arguments) { a.HTTP.ConnLimit = 1 })
	first, err := net.Dial("tcp", v.s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ask := func(c net.Conn) *bufio.Reader {
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		return bufio.NewReader(c)
	}
	if _, err := http.ReadResponse(ask(first), nil); err != nil {
		t.Fatal(err)
	}
	if n := v.s.Connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	v.reached(t, 1)
	second, err := net.Dial("tcp", v.s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := http.ReadResponse(ask(second), nil)
		answered <- err
	}()
	v.applied(func(*server.Arguments) {}) // as much time as a change takes; one of more than the limit would end first, which is idle
	select {
	case err := <-answered:
		t.Fatalf("the second connection was served: %v", err)
	default:
	}
	v.applied(func(a *server.Arguments) { a.HTTP.ConnLimit = 2 })
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// pair makes a certificate of its own authority, and its key, as PEM.
func pair(t *testing.T, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{{127, 0, 0, 1}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kder}))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// peer returns the name in the certificate that a server shows.
func peer(t *testing.T, address string, c *tls.Config) (string, error) {
	t.Helper()
	c.InsecureSkipVerify = true
	conn, err := tls.Dial("tcp", address, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if c.Certificates != nil { // with TLS 1.3 the server's view of them comes later
		fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		if _, err := io.ReadAll(conn); err != nil {
			return "", err
		}
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	renew := func(name string) {
		cert, key := pair(t, name)
		write(t, certFile, cert)
		write(t, keyFile, key)
	}
	renew("one")
	v := serve(t, hello, nil)
	addr := v.s.Address()
	v.applied(func(a *server.Arguments) { a.HTTP.TLS = &server.TLS{CertFile: certFile, KeyFile: keyFile} })
	if v.s.Address() != addr {
		t.Errorf("the address is %s, was %s", v.s.Address(), addr)
	}
	if h := v.Health(); !strings.Contains(h.Message, "https://") {
		t.Errorf("got health %+v", h)
	}
	want := func(name string) {
		t.Helper()
		if got, err := peer(t, addr, &tls.Config{}); err != nil || got != name {
			t.Errorf("got the certificate %q, %v, want %q", got, err, name)
		}
	}
	want("one")
	if b, err := get(t, "http://"+addr, nil); err == nil && strings.HasPrefix(b, "hello") {
		t.Error("plaintext is served")
	}
	if d := cmp.Diff([]string{certFile, keyFile}, v.s.Files()); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}

	renew("two")
	v.applied(func(*server.Arguments) {})
	want("two")

	// Half a renewal has no effect.
	cert, _ := pair(t, "three")
	write(t, certFile, cert)
	if err := v.update(func(*server.Arguments) {}); err == nil || !strings.Contains(err.Error(), "certificate and key") {
		t.Errorf("got %v", err)
	}
	want("two")
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if err := v.update(func(*server.Arguments) {}); err == nil || !strings.Contains(err.Error(), keyFile) {
		t.Errorf("got %v", err)
	}

	if err := v.update(func(a *server.Arguments) { a.HTTP.TLS = nil }); !errors.Is(err, server.ErrPlaintext) {
		t.Errorf("got %v", err)
	}
	want("two")
}

func TestTLSSettings(t *testing.T) {
	cert, key := pair(t, "server")
	clientCert, clientKey := pair(t, "client")
	otherCert, otherKey := pair(t, "other")
	f := func(edit func(*server.TLS), c *tls.Config, fails bool) {
		t.Helper()
		v := serve(t, hello, func(a *server.Arguments) {
			a.HTTP.TLS = &server.TLS{Cert: cert, Key: component.Secret(key)}
			edit(a.HTTP.TLS)
			if err := a.HTTP.TLS.Validate(); err != nil {
				t.Fatal(err)
			}
		})
		defer v.stop()
		if _, err := peer(t, v.s.Address(), c); (err != nil) != fails {
			t.Errorf("got %v", err)
		}
	}
	with := func(cert, key string) *tls.Config {
		p, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{p}}
	}
	mutual := func(x *server.TLS) { x.ClientAuthType, x.ClientCA = "RequireAndVerifyClientCert", clientCert }
	f(func(*server.TLS) {}, &tls.Config{MaxVersion: tls.VersionTLS11}, true)
	f(func(x *server.TLS) { x.MinVersion = "VersionTLS13" }, &tls.Config{MaxVersion: tls.VersionTLS12}, true)
	f(func(x *server.TLS) { x.MinVersion = "TLS13" }, &tls.Config{}, false)
	f(mutual, with(clientCert, clientKey), false)
	f(mutual, with(otherCert, otherKey), true)
	f(mutual, &tls.Config{Certificates: []tls.Certificate{}}, true)
	only := &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
	f(func(x *server.TLS) {
		x.CipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	}, only, false)
	f(func(x *server.TLS) { x.CipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" }, only, true)
}

func TestHTTP2(t *testing.T) {
	cert, key := pair(t, "server")
	f := func(withTLS, enabled bool, want string) {
		t.Helper()
		v := serve(t, hello, func(a *server.Arguments) {
			a.HTTP.HTTP2.Enabled = enabled
			if withTLS {
				a.HTTP.TLS = &server.TLS{Cert: cert, Key: component.Secret(key)}
			}
		})
		defer v.stop()
		scheme := "http://"
		if withTLS {
			scheme = "https://"
		}
		got, err := get(t, scheme+v.s.Address(), func(tr *http.Transport) {
			tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
			tr.Protocols = new(http.Protocols)
			tr.Protocols.SetHTTP1(withTLS)
			tr.Protocols.SetHTTP2(true)
			tr.Protocols.SetUnencryptedHTTP2(!withTLS)
			tr.DisableKeepAlives = false
		})
		if want == "" && err == nil || want != "" && (err != nil || got != "hello "+want) {
			t.Errorf("TLS %v, HTTP/2 %v: got %q, %v, want %q", withTLS, enabled, got, err, want)
		}
	}
	f(true, false, "HTTP/1.1")
	f(true, true, "HTTP/2.0")
	f(false, true, "HTTP/2.0")
	f(false, false, "")
}

func TestValidate(t *testing.T) {
	f := func(v interface{ Validate() error }, want ...string) {
		t.Helper()
		err := v.Validate()
		if err == nil {
			t.Errorf("no error, want %q", want)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("got %v, want %q", err, w)
			}
		}
	}
	f(&server.HTTP{ListenPort: 65536, ConnLimit: -1, ReadTimeout: -1}, "listen_port is 65536", "conn_limit is -1", "server_read_timeout is -1ns")
	f(&server.HTTP2{MaxHandlers: 1, IdleTimeout: 1, MaxReadFrameSize: 5, PingTimeout: -1}, "max_handlers", "idle_timeout", "max_read_frame_size is 5", "ping_timeout")
	f(&server.GRPC{}, "remove the block")
	f(&server.TLS{}, "the certificate is missing", "the key is missing")
	f(&server.TLS{Cert: "c", CertFile: "f", KeyFile: "k"}, "at most one of cert_pem and cert_file")
	f(&server.TLS{CertFile: "f", KeyFile: "k", ClientAuthType: "x", MinVersion: "y", CipherSuites: "z"}, "client_auth_type must be", "min_version must be", `unknown cipher suite "z"`)
	f(&server.TLS{CertFile: "f", KeyFile: "k", ClientAuthType: "RequireAndVerifyClientCert"}, "client_ca")
	f(&server.TLS{CertFile: "f", KeyFile: "k", ClientCAFile: "c"}, "need client_auth_type")
	var a server.Arguments
	a.GracefulShutdownTimeout = -1
	f(&a, "graceful_shutdown_timeout")

	_, err := server.New(server.Options{Logger: slog.New(slog.DiscardHandler)}, &server.Arguments{HTTP: server.HTTP{TLS: &server.TLS{CertFile: "/nowhere", KeyFile: "k"}}})
	if err == nil || !strings.Contains(err.Error(), "cannot read the TLS certificate") {
		t.Errorf("got %v", err)
	}
}
