package httpclient_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/httpclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// squashed is how a component takes the arguments.
type squashed struct {
	Client httpclient.Arguments `alloy:",squash"`
}

func (s *squashed) SetToDefault()   { s.Client.SetToDefault() }
func (s *squashed) Validate() error { return s.Client.Validate() }

func decode(t *testing.T, text string) *httpclient.Arguments {
	t.Helper()
	var s squashed
	if err := syntax.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s.Client
}

func TestRequests(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q", path)
	}
	// f makes a request with the client of text and returns the headers the
	// server saw.
	f := func(text string, want map[string]string) {
		t.Helper()
		var got http.Header
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				user, pass, _ := r.BasicAuth()
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"access_token":"token of %s %s","token_type":"bearer","expires_in":60}`, user, pass)
				return
			}
			got = r.Header
		}))
		defer srv.Close()
		client, err := httpclient.NewClient(decode(t, strings.ReplaceAll(text, "SERVER", srv.URL)))
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		resp, err := client.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		seen := map[string]string{}
		for name := range want {
			seen[name] = strings.Join(got[name], ",")
		}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("%s: headers (-want +got)\n%s", text, d)
		}
	}

	f(`bearer_token = "s3cret"`, map[string]string{"Authorization": "Bearer s3cret"})
	f(`bearer_token_file = `+file("token", "s3cret\n"), map[string]string{"Authorization": "Bearer s3cret"})
	f("basic_auth {\nusername = \"u\"\npassword = \"p\"\n}", map[string]string{"Authorization": "Basic dTpw"})
	f("basic_auth {\nusername = \"u\"\npassword_file = "+file("pass", "p")+"\n}", map[string]string{"Authorization": "Basic dTpw"})
	f("authorization {\ncredentials = \"c\"\n}", map[string]string{"Authorization": "Bearer c"})
	f("authorization {\ntype = \"Token\"\ncredentials_file = "+file("cred", "c")+"\n}", map[string]string{"Authorization": "Token c"})
	f("oauth2 {\nclient_id = \"me\"\nclient_secret = \"s\"\ntoken_url = \"SERVER/token\"\n}", map[string]string{"Authorization": "Bearer token of me s"})
	f(`http_headers = { "X-Tenant" = ["a", "b"] }`, map[string]string{"X-Tenant": "a,b"})
}

func TestProxy(t *testing.T) {
	var got string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r.URL.String() }))
	defer proxy.Close()
	client, err := httpclient.NewClient(decode(t, fmt.Sprintf("proxy_url = %q", proxy.URL)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://example.invalid/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if want := "http://example.invalid/metrics"; got != want {
		t.Errorf("proxy saw %q, want %q", got, want)
	}
}

func TestTLSAndRedirects(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	}))
	defer srv.Close()
	// f returns the status of a request, or the error.
	f := func(text, want string) {
		t.Helper()
		var got string
		client, err := httpclient.NewClient(decode(t, text))
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		resp, err := client.Get(srv.URL)
		if err != nil {
			got = err.Error()
		} else {
			resp.Body.Close()
			got = resp.Status
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f("", "certificate")
	f("tls_config {\ninsecure_skip_verify = true\n}", "200 OK")
	f("follow_redirects = false\ntls_config {\ninsecure_skip_verify = true\n}", "302 Found")
}

func TestDialContext(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer srv.Close()
	var dialled string
	client, err := httpclient.NewClient(decode(t, ""), config.WithDialContextFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled = addr
		return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://in.memory:80/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if dialled != "in.memory:80" {
		t.Errorf("dialled %q", dialled)
	}
}

func TestValidate(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		var s squashed
		err := syntax.Unmarshal([]byte(text), &s)
		if err == nil {
			t.Errorf("%s: no error", text)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %q, want %q", text, err, w)
			}
		}
	}
	f("bearer_token = \"a\"\nbearer_token_file = \"b\"", "not bearer_token and bearer_token_file")
	f("bearer_token = \"a\"\nbasic_auth {\nusername = \"u\"\n}", "not basic_auth and bearer_token")
	f("authorization {\n}\nbasic_auth {\nusername = \"u\"\n}", "not authorization and basic_auth")
	f("basic_auth {\npassword = \"p\"\npassword_file = \"f\"\n}", "password and password_file")
	f("authorization {\ncredentials = \"p\"\ncredentials_file = \"f\"\n}", "credentials and credentials_file")
	f("authorization {\ntype = \"Basic\"\n}", "basic_auth block")
	f("oauth2 {\n}", "client_id must be set", "token_url must be set")
	f("tls_config {\nca_pem = \"a\"\nca_file = \"b\"\n}", "tls_config: at most one of ca_pem and ca_file")
	f("tls_config {\ncert_file = \"b\"\n}", "needs key_pem or key_file")
	f("tls_config {\nkey_file = \"b\"\n}", "needs cert_pem or cert_file")
	f("tls_config {\nmin_version = \"SSL3\"\n}", "min_version must be")
	f("oauth2 {\nclient_id = \"a\"\ntoken_url = \"b\"\ntls_config {\nmin_version = \"SSL3\"\n}\n}", "oauth2: tls_config: min_version")
	f("no_proxy = \"x\"", "no_proxy needs proxy_url")
	f("proxy_from_environment = true\nproxy_url = \"http://x\"", "at most one of proxy_url and proxy_from_environment")
	f("proxy_connect_header = { \"a\" = [\"b\"] }", "proxy_connect_header needs")
	f("http_headers = { \"authorization\" = [\"b\"] }", `setting header "Authorization" is not allowed`)
	f("http_headers = { \"host\" = [\"b\"], \"accept-encoding\" = [\"b\"], \"authorization\" = [\"b\"], \"connection\" = [\"b\"] }",
		"http_headers: setting header \"Accept-Encoding\" is not allowed\nhttp_headers: setting header \"Authorization\" is not allowed\nhttp_headers: setting header \"Connection\" is not allowed\nhttp_headers: setting header \"Host\"")
}

func TestFiles(t *testing.T) {
	a := decode(t, "bearer_token_file = \"/t\"\ntls_config {\nca_file = \"ca\"\ncert_file = \"/c\"\nkey_file = \"/k\"\n}")
	ca, err := filepath.Abs("ca")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/t", ca, "/c", "/k"}, a.Files()); d != "" {
		t.Errorf("files (-want +got)\n%s", d)
	}
}

// Prometheus's client counts connections by the name it is given, in the process's
// default registry, for ever: a foreach whose items come and go would fill it.
func TestClientsLeaveNothingBehind(t *testing.T) {
	series := func() (n int) {
		fams, err := prometheus.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fams {
			n += len(f.GetMetric())
		}
		return n
	}
	a := decode(t, "")
	if _, err := httpclient.NewClient(a); err != nil {
		t.Fatal(err)
	}
	before := series()
	for range 100 {
		if _, err := httpclient.NewClient(a); err != nil {
			t.Fatal(err)
		}
	}
	if after := series(); after != before {
		t.Errorf("100 clients left %d series", after-before)
	}
}
