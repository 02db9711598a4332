package http_test

import (
	"net"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

func TestAuth(t *testing.T) {
	h := &host{components: map[string]component.Component{"x.y": server{}}}
	s := run(t, h, http.Options{})
	c, base := client(t, nil), "http://"+s.Address()
	use := func(block string) {
		t.Helper()
		a := new(http.Arguments)
		if ds := decode(t, a, "http {\n auth {\n basic {\n username = \"me\"\n password = \"pass word\"\n }\n"+block+"\n }\n}"); ds.HasErrors() {
			t.Fatal(ds)
		}
		update(t, s, a)
	}
	f := func(path, user, password string, want int) {
		t.Helper()
		r, err := nethttp.NewRequest("GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if asks := strings.HasPrefix(res.Header.Get("WWW-Authenticate"), `Basic realm=`); res.StatusCode != want || asks != (want == 401) {
			t.Errorf("%s as %s: got %d, asks %v; want %d", path, user, res.StatusCode, asks, want)
		}
	}
	// Without a filter, everywhere.
	use("")
	for _, path := range []string{"/", "/-/healthy", "/api/v0/status", "/api/v0/component/x.y/metrics", "/nothing"} {
		f(path, "", "", 401)
	}
	f("/-/healthy", "me", "pass word", 200)
	f("/-/healthy", "me", "pass wor", 401)
	f("/-/healthy", "me", "", 401)
	f("/-/healthy", "you", "pass word", 401)
	f("/-/healthy", "ME", "pass word", 401)

	// At the paths, by their beginning.
	use(`filter { paths = ["/api", "/-/h"] }`)
	f("/api/v0/status", "", "", 401)
	f("/-/healthy", "", "", 401)
	f("/-/ready", "", "", 503)
	f("/-/healthy", "me", "pass word", 200)

	// Everywhere but at the paths.
	use("filter {\n paths = [\"/-/h\"]\n authenticate_matching_paths = false\n }")
	f("/-/healthy", "", "", 200)
	f("/api/v0/status", "", "", 401)
	f("/api/v0/status", "me", "pass word", 200)
	// A detour through such a path leads to a redirect at most.
	f("/-/healthy/../../api/v0/status", "", "", 307)

	use("filter { }") // as in Alloy: it names nothing
	f("/api/v0/status", "", "", 200)

	// A new password counts for connections that are there.
	use("")
	f("/-/healthy", "me", "pass word", 200)
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "me", Password: "new"}}})
	f("/-/healthy", "me", "pass word", 401)
	f("/-/healthy", "me", "new", 200)

	// A client with the password may use any host name.
	if status, _ := get(t, c, "GET", base+"/api/v0/status", "Host", "collector.example", "Authorization", "Basic bWU6bmV3"); status != 200 {
		t.Errorf("by another name: got %d", status)
	}

	// Handlers that were added are behind it, weir's own connections are not.
	data := s.Data().(service.HTTPData)
	data.Handle("/extra/", nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {}))
	f("/extra/x", "", "", 401)
	f("/extra/x", "me", "new", 200)
	if status, body := get(t, client(t, data.DialContext), "GET", "http://"+data.MemoryAddress+"/api/v0/component/x.y/metrics"); status != 200 || body != "GET /metrics" {
		t.Errorf("in memory: got %d %q", status, body)
	}
}

// TestHostOfCertificate: a name in the certificate is weir's, in plaintext it is
// anybody's.
func TestHostOfCertificate(t *testing.T) {
	ca := newAuthority(t)
	s := run(t, &host{}, http.Options{})
	if status, _ := get(t, client(t, nil), "GET", "http://"+s.Address()+"/api/v0/status", "Host", "weir.example"); status != 403 {
		t.Errorf("plaintext: got %d", status)
	}
	update(t, s, inline(ca.issue("one")))
	c := tlsClient(t, ca, nil)
	_, port, _ := net.SplitHostPort(s.Address())
	if status, body := get(t, c, "GET", "https://"+s.Address()+"/api/v0/status", "Host", "weir.example:"+port); status != 200 {
		t.Errorf("TLS: got %d %s", status, body)
	}
	if status, _ := get(t, c, "GET", "https://"+s.Address()+"/api/v0/status", "Host", "evil.example"); status != 403 {
		t.Errorf("another name: got %d", status)
	}
}
