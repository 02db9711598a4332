package node_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// Valid and invalid blocks of a source that accepts requests.
func TestRequestsBlock(t *testing.T) {
	n := newOutside(t, host.Outside{})
	f := func(def, attrs, wantErr string) {
		t.Helper()
		path := n.f.Write("a/b.lua", "local weir = require \"weir\" return weir."+def)
		n.cat.Refresh([]string{path})
		r, _ := n.cat.Lookup("a.b")
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		switch err := registrytest.Decode(r.NewArgs(), attrs, n.sink); {
		case err == nil && wantErr != "":
			t.Errorf("%s with %s: it was taken, want %q", def, attrs, wantErr)
		case err != nil && (wantErr == "" || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("%s with %s: got %v, want %q", def, attrs, err, wantErr)
		}
	}
	serves := "source { http = { [\"/\"] = function() end } }"
	both := "source { needs = { http = true }, http = { [\"/\"] = function() end } }"
	for _, def := range []string{serves, both} {
		f(def, "", "")
		f(def, "script {\nrequests {\nmax_body_size = \"8MiB\"\nmax_requests = 5\n}\n}", "")
		f(def, "script {\nrequests {\nmax_body_size = \"9MiB\"\n}\n}", "max_body_size")
		f(def, "script {\nrequests {\nmax_requests = 0\n}\n}", "max_requests = 0: it must be between 1 and 10000")
		f(def, "script {\nlimits {\ntime = \"1ns\"\n}\n}", "script.limits.time")
	}
	f(both, "script {\nallow {\nhttp = [\"https://x/*\"]\n}\nhttp {\nproxy_url = \"http://p:1\"\n}\n}", "")
	f(serves, "script {\nhttp {\n}\n}", "http")
	f("source { poll = function() end, interval = \"1m\" }", "script {\nrequests {\n}\n}", "requests")
	f("source { poll = function() end, interval = \"1m\" }", "listen {\nport = 1\n}", "listen")
	f(serves, "listen {\nport = 0\n}", "")
	f(serves, "listen {\n}", "port")
	f(serves, "listen {\nport = 70000\n}", "cannot use port = 70000: it must be 0 to 65535")
	f(serves, "listen {\nport = 1\nconn_limit = -1\nread_timeout = \"0s\"\n}", "cannot use conn_limit = -1")
	f(serves, "listen {\nport = 1\nidle_timeout = \"-1s\"\n}", "cannot use idle_timeout")
	f(serves, "listen {\nport = 1\ntls {\n}\n}", "the certificate is missing")
}

// Mistakes in routes are found when the script is loaded.
func TestRouteMistakes(t *testing.T) {
	n := newOutside(t, host.Outside{})
	f := func(http, want, hint string) {
		t.Helper()
		path := n.f.Write("a/b.lua", "local weir = require \"weir\"\nlocal function f() end\nreturn weir.source {\n  http = "+http+",\n}")
		n.cat.Refresh([]string{path})
		r, _ := n.cat.Lookup("a.b")
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || !strings.Contains(r.Err.Error(), hint) {
			t.Errorf("%s: got %v, want %q and %q", http, r.Err, want, hint)
		}
	}
	f(`{}`, "cannot use a map as http: it must be a table of functions by route", `write http = { ["POST /hook"] = function(req, ctx) … end }`)
	f(`f`, "as http: it must be a table of functions by route", "")
	f(`{ ["POST /hook"] = 5 }`, `a/b.lua:4: cannot use 5 as http["POST /hook"]: it must be a function`, "")
	f(`{ ["post /hook"] = f }`, `a/b.lua:2: cannot serve "post /hook": the method must be GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, or none for all`, `write "POST /hook"`)
	f(`{ ["PSOT /hook"] = f }`, `cannot serve "PSOT /hook"`, "did you mean POST?")
	f(`{ ["POST hook"] = f }`, `cannot serve "POST hook": the path must begin with "/"`, "")
	f(`{ ["hook"] = f }`, `cannot serve "hook": the path must begin with "/"`, "")
	f(`{ ["POST example.com/hook"] = f }`, `the path must begin with "/"`, "")
	f(`{ ["POST /hook/{"] = f }`, `cannot serve "POST /hook/{": at offset`, "bad wildcard segment")
	f(`{ ["POST /{a}/{a}"] = f }`, `duplicate wildcard name "a"`, "")
	f(`{ ["POST /{a...}/b"] = f }`, `not at end`, "")
	f(`{ ["GET /{a}/x"] = f, ["GET /y/{b}"] = f }`, `cannot serve both "GET /y/{b}" and "GET /{a}/x": one request can match both, and neither says more than the other`, "")
	f(`{ ["GET /a"] = f, ["GET  /a"] = f }`, `cannot serve both`, "")
}

var listening = regexp.MustCompile(`listening on (https?://[\d.]+:\d+)`)

// address waits until the node serves an address of its own, and returns its
// URL.
func (n *harness) address() (url string) {
	n.t.Helper()
	n.Wait(n.t, func() bool {
		if m := listening.FindStringSubmatch(n.Health().Message); m != nil {
			url = m[1]
		}
		return url != ""
	})
	return url
}

// aside listens on a port that nobody gets who asks for any (Linux gives those
// from 32768 on): once it is closed it stays free.
func aside(t *testing.T) (l net.Listener, port int) {
	t.Helper()
	for range 100 {
		port = 10000 + rand.IntN(20000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			t.Cleanup(func() { l.Close() })
			return l, port
		}
	}
	t.Fatal("no port is free")
	return nil, 0
}

func listenOn(port int, more string) string {
	return fmt.Sprintf("listen {\naddress = \"127.0.0.1\"\nport = %d\n%s\n}\n", port, more)
}

// asks makes a request on a connection of a client's.
func asks(c *http.Client, url, body string) string {
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, b)
}

// newClient returns a client with connections of its own.
func newClient(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// An address of the node's own is open over saves, and closed with the node.
func TestListen(t *testing.T) {
	n := newHarness(t)
	l, port := aside(t)
	save := func(version int, listen string) {
		n.save(source(hook(fmt.Sprintf(`ctx.emit { name = "n", labels = { i = req.body }, value = 1 } return "v%d"`, version))), listen)
	}
	save(0, listenOn(port, ""))
	n.Wait(t, func() bool { return n.Health().State == component.Unhealthy })
	if got := n.Health().Message; !strings.Contains(got, "the address is already in use by another process or another block; stop that, or change address or port in the block listen of ") {
		t.Errorf("got health %q", got)
	}
	l.Close()
	advanceUntil(t, n, time.Minute, func() bool { return listening.MatchString(n.Health().Message) })
	url := n.address() + "/hook"
	if want := fmt.Sprintf("http://127.0.0.1:%d/hook", port); url != want {
		t.Errorf("it listens on %s, want %s", url, want)
	}
	same(t, asks(newClient(t), url, "first"), "200 v0")
	if got, err := json.Marshal(n.c.(component.Debugger).DebugInfo()); err != nil || !strings.Contains(string(got), fmt.Sprintf(`"listening":"127.0.0.1:%d"`, port)) {
		t.Errorf("got debug info %s, %v", got, err)
	}
	same(t, asks(newClient(t), url+"/other", ""), "404 404 page not found\n")

	var wg sync.WaitGroup
	var asked atomic.Int64
	stop := make(chan struct{})
	for i := range 4 {
		c := newClient(t)
		c.Transport.(*http.Transport).DisableKeepAlives = i%2 == 0
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := asks(c, url, fmt.Sprint(asked.Add(1))); !strings.HasPrefix(got, "200 v") {
					t.Errorf("got %q while it was saved", got)
				}
			}
		})
	}
	for v := range 5 {
		for from := asked.Load(); asked.Load() < from+10; {
			runtime.Gosched()
		}
		save(v+1, listenOn(port, ""))
	}
	close(stop)
	wg.Wait()
	same(t, asks(newClient(t), url, "last"), "200 v5")
	got := map[string]bool{}
	for _, b := range n.sink.Batches() {
		for _, s := range b.Series {
			got[s.Label("i")] = true
		}
	}
	if len(got) != int(asked.Load())+2 {
		t.Errorf("%d requests were answered, of which %d were accepted", asked.Load()+2, len(got))
	}

	closed := func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
			c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
			if err != nil {
				return
			}
			c.Close()
			if time.Now().After(deadline) {
				t.Fatal("the port is open still")
			}
		}
	}
	save(6, "") // the block is gone
	closed()
	n.Wait(t, func() bool { // the health follows the port
		got := n.Health()
		return got.State == component.Healthy && !strings.Contains(got.Message, "listening")
	})
	save(7, listenOn(port, ""))
	same(t, asks(newClient(t), n.address()+"/hook", ""), "200 v7")
	n.stop()
	closed()
}

// certificate makes a certificate of its own authority, and its key, as PEM.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{{127, 0, 0, 1}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(crand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kder}))
}

// TLS: certificates are read again when their files change, and there is no way
// back to plaintext.
func TestListenTLS(t *testing.T) {
	n := newHarness(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(name string) {
		cert, key := certificate(t, name)
		for path, text := range map[string]string{certFile: cert, keyFile: key} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	peer := func(url string) string {
		c := newClient(t)
		name := ""
		c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			name = s.PeerCertificates[0].Subject.CommonName
			return nil
		}}
		if got := asks(c, url+"/hook", ""); got != "200 ok" {
			t.Errorf("got %q", got)
		}
		return name
	}
	write("one.test")
	settings := listenOn(0, fmt.Sprintf("tls {\ncert_file = %q\nkey_file = %q\n}", certFile, keyFile))
	n.save(source(hook(`return "ok"`)), settings)
	url := n.address()
	same(t, url[:8], "https://")
	same(t, peer(url), "one.test")
	same(t, asks(newClient(t), strings.Replace(url, "https", "http", 1)+"/hook", ""), "400 Client sent an HTTP request to an HTTPS server.\n")

	if diff := cmp.Diff([]string{certFile, keyFile}, n.c.(component.Sourced).Sourced()); diff != "" {
		t.Errorf("it reads (-want +got):\n%s", diff)
	}
	write("two.test")
	if err := n.c.(component.Updater).Update(n.args); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); peer(url) != "two.test"; { // it takes effect a moment later
		if time.Now().After(deadline) {
			t.Fatal("the certificate was not read again")
		}
	}
	n.save(source(hook(`return "ok" `)), settings) // and a save serves it on
	same(t, peer(n.address()), "two.test")

	refused := func(attrs, want string) {
		t.Helper()
		r, _ := n.cat.Lookup("a.b")
		args := r.NewArgs()
		if err := registrytest.Decode(args, attrs, n.sink); err != nil {
			t.Fatal(err)
		}
		o := n.Options()
		if _, err := r.Build(o, args, n.c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: got %v, want %q", attrs, err, want)
		}
	}
	refused(listenOn(0, ""), "refused to go from TLS to plaintext")
	os.Remove(certFile)
	refused(settings, "cannot read the TLS certificate")
	same(t, peer(url), "two.test") // what is served is served on
}

// A client that sends its body too slowly is answered 408, and keeps nobody
// from the VM.
func TestSlowClient(t *testing.T) {
	n := newHarness(t)
	n.save(source(hook(`return "ok"`)), listenOn(0, "read_timeout = \"3s\"")+"script {\nconcurrency = \"single\"\n}\n")
	url := n.address()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestTimeout {
		t.Errorf("got %s", answer.Status)
	}
	same(t, asks(newClient(t), url+"/hook", ""), "200 ok")
}
