package http_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	nethttp "net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// tlsClient trusts an authority.
func tlsClient(t *testing.T, a *authority, edit func(*tls.Config)) *nethttp.Client {
	c := &tls.Config{RootCAs: a.pool()}
	if edit != nil {
		edit(c)
	}
	tr := &nethttp.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &nethttp.Client{Transport: tr}
}

// served returns the name in the certificate that a new connection gets, or why
// there is none.
func served(t *testing.T, a *authority, addr string) string {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: a.pool()})
	if err != nil {
		return "cannot connect: " + err.Error()
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func inline(cert, key string) *http.Arguments {
	return &http.Arguments{TLS: &http.TLSArguments{Cert: cert, Key: component.Secret(key)}}
}

func update(t *testing.T, s *http.Service, a *http.Arguments) {
	t.Helper()
	if err := s.Update(a); err != nil {
		t.Fatal(err)
	}
}

func TestPlaintextToTLS(t *testing.T) {
	ca := newAuthority(t)
	s := run(t, &host{}, http.Options{})
	plain, addr := client(t, nil), s.Address()
	if status, _ := get(t, plain, "GET", "http://"+addr+"/-/healthy"); status != 200 {
		t.Fatalf("plaintext: got %d", status)
	}
	// A connection that is in the middle of a request when the change comes.
	half, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	io.WriteString(half, "GET /-/healthy HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	if res, err := nethttp.ReadResponse(bufio.NewReader(half), nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("got %v, %v", res, err)
	}

	update(t, s, inline(ca.issue("one")))
	if s.Address() != addr {
		t.Errorf("it listens on %s now, was %s", s.Address(), addr)
	}
	secure := tlsClient(t, ca, nil)
	res, err := secure.Get("https://" + addr + "/-/healthy")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("TLS: got %s %s", res.Proto, res.Status)
	}
	// In memory nothing changes.
	data := s.Data().(service.HTTPData)
	if status, _ := get(t, client(t, data.DialContext), "GET", "http://"+data.MemoryAddress+"/-/healthy"); status != 200 {
		t.Errorf("in memory: got %d", status)
	}
	const want = "Client sent an HTTP request to an HTTPS server."
	// The old connection, a client that may use its old one, and a new one.
	io.WriteString(half, "GET /metrics HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	for _, c := range []*nethttp.Client{plain, client(t, nil)} {
		if status, body := get(t, c, "GET", "http://"+addr+"/-/healthy"); status != 400 || body != want {
			t.Errorf("plaintext after the change: got %d %q", status, body)
		}
	}
	if rest, err := io.ReadAll(half); err != nil || !strings.HasPrefix(string(rest), "HTTP/1.1 400 ") || !strings.Contains(string(rest), want) {
		t.Errorf("the old connection got %q, %v, and should be told and closed", rest, err)
	}

	// And never back.
	if err := s.Check(new(http.Arguments), false); err == nil || !strings.Contains(err.Error(), "restart weir") {
		t.Errorf("Check without tls: got %v", err)
	}
	if err := s.Update(new(http.Arguments)); err == nil {
		t.Error("Update took the TLS away")
	}
	if got := served(t, ca, addr); got != "one" {
		t.Errorf("got certificate %s", got)
	}
}

func TestRenewal(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	cert, key := ca.issue("one")
	certFile, keyFile := file(t, filepath.Join(dir, "cert"), cert), file(t, filepath.Join(dir, "key"), key)
	a := &http.Arguments{TLS: &http.TLSArguments{CertFile: certFile, KeyFile: keyFile}}
	s := run(t, &host{}, http.Options{})
	update(t, s, a)
	if diff := cmp.Diff([]string{certFile, keyFile}, s.Sourced()); diff != "" {
		t.Errorf("sourced (-want +got):\n%s", diff)
	}
	old, err := tls.Dial("tcp", s.Address(), &tls.Config{RootCAs: ca.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	next, nextKey := ca.issue("two")

	// Half of the new pair: the last good one stays.
	file(t, certFile, next)
	if err := s.Update(a); err == nil || err.Error() != "cert_file is the certificate of another key than key_file" {
		t.Errorf("got %v for a certificate without its key", err)
	}
	if got := served(t, ca, s.Address()); got != "one" {
		t.Errorf("got %s after half a renewal", got)
	}
	file(t, keyFile, nextKey)
	update(t, s, a)
	if got := served(t, ca, s.Address()); got != "two" {
		t.Errorf("got %s after the renewal", got)
	}
	// The old connection goes on.
	io.WriteString(old, "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if res, err := nethttp.ReadResponse(bufio.NewReader(old), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the old connection got %v, %v", res, err)
	}
	file(t, keyFile, "nonsense")
	if err := s.Update(a); err == nil || !strings.HasPrefix(err.Error(), "cannot use key_file: ") || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v for an invalid key", err)
	}
	if got := served(t, ca, s.Address()); got != "two" {
		t.Errorf("got %s after a broken key", got)
	}
	a.TLS.KeyFile = filepath.Join(dir, "missing")
	err = s.Check(a, false)
	if arg, ok := errors.AsType[*component.ArgumentError](err); !ok || arg.Path != "tls.key_file" || !strings.HasPrefix(err.Error(), "cannot read key_file: open ") {
		t.Errorf("got %#v for a missing file", err)
	}
	if err := s.Check(a, true); err != nil {
		t.Errorf("got %v while not all is known", err)
	}
}

// TestWaits: nothing is served in plaintext, or without a password, while a
// block says that it should not be.
func TestWaits(t *testing.T) {
	ca := newAuthority(t)
	get503 := func(s *http.Service, scheme string, c *nethttp.Client) {
		t.Helper()
		if status, body := get(t, c, "GET", scheme+"://"+s.Address()+"/-/healthy"); status != 503 || !strings.HasPrefix(body, "weir does not serve") {
			t.Errorf("got %d %q", status, body)
		}
	}
	// From the start: a certificate that is not known yet.
	s := http.New(http.Options{Listen: "127.0.0.1:0"})
	if err := s.Wait(&http.Arguments{TLS: new(http.TLSArguments)}); err != nil {
		t.Fatal(err)
	}
	serve(t, s, &host{})
	plain := client(t, nil)
	if status, body := get(t, plain, "GET", "http://"+s.Address()+"/metrics"); status != 400 || !strings.Contains(body, "HTTPS") {
		t.Errorf("plaintext: got %d %q", status, body)
	}
	if got := served(t, ca, s.Address()); !strings.Contains(got, "internal error") {
		t.Errorf("TLS: got %s", got)
	}
	update(t, s, inline(ca.issue("one")))
	if got := served(t, ca, s.Address()); got != "one" {
		t.Errorf("got %s", got)
	}
	// A certificate that cannot be had leaves the last good one.
	if err := s.Wait(&http.Arguments{TLS: new(http.TLSArguments)}); err != nil {
		t.Fatal(err)
	}
	if got := served(t, ca, s.Address()); got != "one" {
		t.Errorf("got %s", got)
	}
	// A password that is not known yet.
	if err := s.Wait(&http.Arguments{TLS: new(http.TLSArguments), Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "u"}}}); err != nil {
		t.Fatal(err)
	}
	get503(s, "https", tlsClient(t, ca, nil))
	update(t, s, inline(ca.issue("two")))

	// While it serves plaintext: a certificate that cannot be used.
	s = run(t, &host{}, http.Options{})
	if err := s.Update(inline("nonsense", "nonsense")); err == nil {
		t.Error("nonsense is a certificate")
	}
	if status, _ := get(t, plain, "GET", "http://"+s.Address()+"/metrics"); status != 400 {
		t.Errorf("got %d in plaintext while TLS is configured", status)
	}
	// It never served TLS, so the way back is open.
	if err := s.Check(new(http.Arguments), false); err != nil {
		t.Error(err)
	}
	update(t, s, new(http.Arguments))
	if status, _ := get(t, plain, "GET", "http://"+s.Address()+"/-/healthy"); status != 200 {
		t.Errorf("got %d", status)
	}
	if err := s.Wait(&http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "u"}}}); err != nil {
		t.Fatal(err)
	}
	get503(s, "http", plain)
}

func TestClientCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.issue("server")
	mine, foreign := clientPair(t, ca), clientPair(t, other)
	with := func(auth string, clientCA string) *http.Arguments {
		a := inline(cert, key)
		if err := a.TLS.ClientAuth.UnmarshalText([]byte(auth)); err != nil {
			t.Fatal(err)
		}
		a.TLS.ClientCA = clientCA
		return a
	}
	s := run(t, &host{}, http.Options{})
	f := func(auth, clientCA string, cs []tls.Certificate, want bool) {
		t.Helper()
		update(t, s, with(auth, clientCA))
		c := tlsClient(t, ca, func(c *tls.Config) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(cs) == 0 {
					return new(tls.Certificate), nil
				}
				return &cs[0], nil
			}
		})
		res, err := c.Get("https://" + s.Address() + "/-/healthy")
		if err == nil {
			res.Body.Close()
		}
		if ok := err == nil && res.StatusCode == 200; ok != want {
			t.Errorf("%s with %d certificates: got %v, %v", auth, len(cs), res, err)
		}
	}
	none, good, bad := []tls.Certificate(nil), []tls.Certificate{mine}, []tls.Certificate{foreign}
	f("NoClientCert", "", none, true)
	f("RequestClientCert", "", none, true)
	f("RequestClientCert", ca.pem, bad, true)
	f("RequireAnyClientCert", "", none, false)
	f("RequireAnyClientCert", ca.pem, bad, true)
	f("VerifyClientCertIfGiven", ca.pem, none, true)
	f("VerifyClientCertIfGiven", ca.pem, good, true)
	f("VerifyClientCertIfGiven", ca.pem, bad, false)
	f("RequireAndVerifyClientCert", ca.pem, none, false)
	f("RequireAndVerifyClientCert", ca.pem, good, true)
	f("RequireAndVerifyClientCert", ca.pem, bad, false)

	// Connections from before a client certificate was required must reconnect.
	update(t, s, with("NoClientCert", ""))
	old := tlsClient(t, ca, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	if status, _ := get(t, old, "GET", "https://"+s.Address()+"/-/healthy"); status != 200 {
		t.Errorf("got %d", status)
	}
	conn, err := tls.Dial("tcp", s.Address(), &tls.Config{RootCAs: ca.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	update(t, s, with("RequireAndVerifyClientCert", ca.pem))
	io.WriteString(conn, "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if rest, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(rest), "HTTP/1.1 421 ") {
		t.Errorf("got %q, %v from a connection that gave no certificate", rest, err)
	}
}

func clientPair(t *testing.T, a *authority) tls.Certificate {
	cert, key := a.issue("client")
	return keyPair(t, cert, key)
}

func TestTLSChoices(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue("server")
	s := run(t, &host{}, http.Options{})
	// f serves with attributes in a config and returns what a client negotiates.
	f := func(attrs string, client *tls.Config, want string) {
		t.Helper()
		a := new(http.Arguments)
		if ds := decode(t, a, "http {\n tls {\n"+attrs+"\n cert_pem = `"+cert+"`\n key_pem = `"+key+"`\n }\n}"); ds.HasErrors() {
			t.Fatal(ds)
		}
		update(t, s, a)
		client.RootCAs = ca.pool()
		got := "refused"
		if c, err := tls.Dial("tcp", s.Address(), client); err == nil {
			st := c.ConnectionState()
			got = tls.VersionName(st.Version) + " " + tls.CipherSuiteName(st.CipherSuite) + " " + st.NegotiatedProtocol
			c.Close()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", attrs, got, want)
		}
	}
	h2 := []string{"h2", "http/1.1"}
	f(`min_version = "TLS13"`, &tls.Config{MaxVersion: tls.VersionTLS12}, "refused")
	f(`min_version = "TLS12"`, &tls.Config{MaxVersion: tls.VersionTLS11}, "refused")
	f(`min_version = "TLS10"`, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "TLS 1.0 TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA ")
	f(`max_version = "TLS12"`+"\n"+`cipher_suites = ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]`, &tls.Config{NextProtos: h2}, "TLS 1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 h2")
	f(`max_version = "TLS12"`+"\n"+`cipher_suites = ["TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"]`, &tls.Config{NextProtos: h2}, "TLS 1.2 TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA http/1.1")
	f(`curve_preferences = ["CurveP384"]`, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256}}, "refused")
	f(`curve_preferences = ["CurveP384"]`, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}}, "TLS 1.3 TLS_AES_128_GCM_SHA256 ")
}

func decode(t *testing.T, into any, text string) config.Diagnostics {
	t.Helper()
	c, ds := config.Parse(map[string]string{"c.alloy": text})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return c.Blocks[0].Decode(c.NewScope("v1"), into)
}

func TestArguments(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue("a")
	_, otherKey := ca.issue("b")
	f := func(body, want string) {
		t.Helper()
		body = strings.NewReplacer("CERT", "`"+cert+"`", "OTHERKEY", "`"+otherKey+"`", "LOCKED", "`"+encode("ENCRYPTED PRIVATE KEY", []byte{0})+"`", "BROKEN", "`"+encode("CERTIFICATE", []byte{0})+"`", "KEY", "`"+key+"`").Replace(body)
		var got []string
		for _, d := range decode(t, new(http.Arguments), "http {\n"+body+"\n}") {
			got = append(got, d.Error())
		}
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", body, diff)
		}
	}
	f(``, "")
	f(`tls { }`, "c.alloy:2:1: tls needs a certificate: cert_pem or cert_file, and it must not be empty\n"+
		"c.alloy:2:1: tls needs the certificate's key: key_pem or key_file, and it must not be empty")
	f("tls {\ncert_file = \"c\"\nkey_file = \"k\"\n}", "")
	f("tls {\ncert_file = \"c\"\ncert_pem = CERT\nkey_file = \"k\"\n}", "c.alloy:4:1: at most one of cert_pem and cert_file may be set")
	f("tls {\nkey_pem = OTHERKEY\ncert_pem = CERT\n}", "c.alloy:9:1: cert_pem is the certificate of another key than key_pem")
	f("tls {\ncert_pem = \"x\"\nkey_pem = KEY\n}", "c.alloy:3:1: cannot use cert_pem: there is no certificate in PEM in it")
	f("tls {\ncert_pem = KEY\nkey_pem = KEY\n}", "c.alloy:3:1: cannot use cert_pem: there is a key in it and no certificate")
	f("tls {\nkey_pem = CERT\ncert_pem = CERT\n}", "c.alloy:3:1: cannot use key_pem: there is a certificate in it and no key")
	f("tls {\nkey_pem = LOCKED\ncert_pem = CERT\n}", "c.alloy:3:1: cannot use key_pem: the key is encrypted, give it without a password")
	f("tls {\ncert_pem = BROKEN\nkey_pem = KEY\n}", "c.alloy:3:1: cannot use cert_pem: x509: malformed certificate")
	f("tls {\nkey_file = \"k\"\ncert_file = \"c\"\nclient_ca_file = \"ca\"\n}", "c.alloy:5:1: client_ca_file has no use when client_auth_type is NoClientCert")
	f("tls {\nkey_file = \"k\"\ncert_file = \"c\"\nclient_ca_pem = \"ca\"\nclient_auth_type = \"RequireAndVerifyClientCert\"\n}", "c.alloy:5:1: cannot use client_ca_pem: there is no certificate in it")
	f("tls {\nkey_file = \"k\"\ncert_file = \"c\"\nclient_auth_type = \"all\"\n}", `c.alloy:5:20: tls.client_auth_type: "all" is not one of NoClientCert, RequestClientCert, RequireAndVerifyClientCert, RequireAnyClientCert, VerifyClientCertIfGiven`)
	f("tls {\nkey_file = \"k\"\ncert_file = \"c\"\nmin_version = \"TLS13\"\nmax_version = \"TLS12\"\n}", "c.alloy:5:1: min_version TLS13 is newer than max_version TLS12")
	f("tls {\nkey_file = \"k\"\ncert_file = \"c\"\nmin_version = \"1.2\"\n}", `c.alloy:5:15: tls.min_version: "1.2" is not one of TLS10, TLS11, TLS12, TLS13`)
	f("tls {\nkey_file = \"k\"\ncert_file = \"c\"\ncurve_preferences = [\"P1\"]\n}", `c.alloy:5:22: tls.curve_preferences[0]: "P1" is not one of CurveP256, CurveP384, CurveP521, X25519`)
	f("tls {\nwindows_certificate_filter {\nserver {\nstore = \"MY\"\n}\n}\n}", "c.alloy:3:1: windows_certificate_filter is not supported: give the certificate with cert_file and key_file")
	f("auth {\nbasic {\nusername = \"u\"\n}\n}", "c.alloy:3:1: missing required attribute auth.basic.password")
	f("auth { }", "c.alloy:2:1: warning: auth has no effect without a block basic: clients are not asked for a password")
	f("auth {\nbasic {\nusername = \"u\"\npassword = \"p\"\n}\nfilter { }\n}", "c.alloy:7:1: warning: filter without paths matches no request: clients are not asked for a password")
}

// TestManual: every argument has a sentence, and the example is one.
func TestManual(t *testing.T) {
	d := http.New(http.Options{}).Definition()
	fields := config.Describe(d.NewConfig())
	for _, f := range fields {
		if d.Doc.Args[f.Path] == "" && f.Path != "tls.windows_certificate_filter.server" && f.Path != "tls.windows_certificate_filter.client" {
			t.Errorf("%s is not in the manual", f.Path)
		}
	}
	if len(fields) < 15 {
		t.Errorf("only %d arguments", len(fields))
	}
	c, ds := config.Parse(map[string]string{"c.alloy": d.Doc.Example})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	s := c.NewScope("v1")
	for _, id := range []string{"local.file.cert", "local.file.key", "local.file.password"} {
		s.SetProvisional(id, struct {
			Content component.OptionalSecret `alloy:"content,attr"`
		}{})
	}
	if ds := c.Blocks[0].Decode(s, d.NewConfig()); len(ds) > 0 {
		t.Error(ds)
	}
}
