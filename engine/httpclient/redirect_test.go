package httpclient_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/httpclient"
)

// secrets are what a client may send, in all the ways that there are.
const withSecrets = `
authorization {
	credentials = "secret"
}
http_headers = { "X-Api-Key" = ["secret"] }
`

// TestRedirectToAnotherHost: neither credentials nor headers nor a body go to a host
// or port that the config does not name.
func TestRedirectToAnotherHost(t *testing.T) {
	var got http.Header
	var body string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		b, _ := io.ReadAll(r.Body)
		body = string(b)
	}))
	defer other.Close()
	var location string
	status := http.StatusTemporaryRedirect
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			got = r.Header.Clone()
			return
		}
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}))
	defer first.Close()
	do := func(text, method, body string) error {
		t.Helper()
		client, err := httpclient.NewClient(decode(t, text))
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		var in io.Reader
		if body != "" {
			in = strings.NewReader(body)
		}
		req, err := http.NewRequest(method, first.URL+"/?token=secret", in)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Own", "secret")
		req.Header.Set("Accept", "text/plain")
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}

	// The same host gets everything again.
	location = "/here"
	if err := do(withSecrets, "GET", ""); err != nil || got.Get("Authorization") != "Bearer secret" || got.Get("X-Api-Key") != "secret" || got.Get("X-Own") != "secret" {
		t.Errorf("the same host got %v, %v", got, err)
	}
	// Another port is another host to which a GET goes without anything.
	location = other.URL + "/there"
	for _, text := range []string{withSecrets, `bearer_token = "secret"`, "basic_auth {\n\tusername = \"u\"\n\tpassword = \"secret\"\n}"} {
		got = nil
		if err := do(text, "GET", ""); err != nil || got == nil {
			t.Errorf("a GET is not redirected: %v", err)
		}
		for name, values := range got {
			if strings.Contains(strings.Join(values, " "), "secret") || name == "Authorization" {
				t.Errorf("another host got %s: %v", name, values)
			}
		}
		if got.Get("Accept") != "text/plain" {
			t.Errorf("Accept is %q", got.Get("Accept"))
		}
	}
	// A body does not go there.
	got, body = nil, ""
	for _, status = range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		err := do(withSecrets, "POST", "secret")
		host := strings.TrimPrefix(other.URL, "http://")
		if err == nil || got != nil || body != "" || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), strings.TrimPrefix(first.URL, "http://")) {
			t.Errorf("a body was redirected to another host: %v %q, %v", got, body, err)
		}
	}
	// Nor does a user that the server names.
	location = strings.Replace(first.URL, "http://", "http://user:password@", 1) + "/here"
	if err := do("", "GET", ""); err == nil || !strings.Contains(err.Error(), "user name") {
		t.Errorf("got %v", err)
	}
	// One that left stays without them, also when it comes back.
	back := httptest.NewServer(http.RedirectHandler(first.URL+"/here", http.StatusFound))
	defer back.Close()
	location, got = back.URL, nil
	if err := do(withSecrets, "GET", ""); err != nil || got.Get("X-Api-Key") != "" || got.Get("Authorization") != "" {
		t.Errorf("after another host, the first one got %v, %v", got, err)
	}
	// Not from https to http.
	location = other.URL
	secure := httptest.NewTLSServer(first.Config.Handler)
	defer secure.Close()
	client, err := httpclient.NewClient(decode(t, "tls_config {\n\tinsecure_skip_verify = true\n}"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if resp, err := client.Get(secure.URL); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("https was left: %v, %v", resp, err)
	}
}

// Clients that Prometheus creates from a config send http_headers to every host
// to which they are redirected, so they must not follow redirects.
func TestConfigWithHeaders(t *testing.T) {
	for text, want := range map[string]bool{"": true, `bearer_token = "x"`: true, `http_headers = { "X-Api-Key" = ["x"] }`: false, "follow_redirects = false": false} {
		c, err := decode(t, text).Config()
		if err != nil || c.FollowRedirects != want {
			t.Errorf("%s: redirects are followed: %v, want %v (%v)", text, c.FollowRedirects, want, err)
		}
	}
}
