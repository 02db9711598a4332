//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestUIOrigins: a page of another origin can neither change something nor follow what
// happens, even if it knows the path of the session and is on the same host, so that the
// browser sends the cookie of the session.
func TestUIOrigins(t *testing.T) {
	w, b, _ := startUI(t)
	b.shows("my.tidy.default")
	session, err := ask(b, chromedp.Evaluate[string](`location.pathname`))
	if err != nil || !strings.HasPrefix(session, "/s/") {
		t.Fatalf("got the path %q, %v", session, err)
	}
	base := w.url + session
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<p id="out">attacks:</p><iframe name="sink"></iframe>
			<form id="form" method="post" target="sink" action="%[1]s-/reload"></form>
			<script>
			const out = t => document.getElementById("out").textContent += " " + t;
			const attack = (name, path, init) => fetch(%[1]q + path, {credentials: "include", ...init}).then(
				r => out(name + "=" + (r.type === "opaque" ? "opaque" : "READ")), () => out(name + "=failed"));
			const events = new EventSource(%[1]q + "api/v0/events", {withCredentials: true});
			events.onmessage = events.onopen = () => out("events=READ");
			events.onerror = () => { events.close(); out("events=failed"); };
			document.getElementById("form").submit();
			(async () => {
				await attack("simple", "-/reload", {method: "POST", mode: "no-cors"});
				await attack("cors", "-/reload", {method: "POST"});
				await attack("rollback", "api/v0/control/my.tidy.default/rollback", {method: "POST", mode: "no-cors"});
				await attack("write", "api/v0/control/my.tidy.default/source", {method: "PUT", body: "{}"});
				await attack("status", "api/v0/status");
				await attack("tap", "api/v0/tap/my.tidy.default", {mode: "no-cors"});
				out("end");
			})();
			</script>`, base)
	}))
	t.Cleanup(other.Close)
	for _, complaint := range []string{"Refused", "CORS", "403", "ERR_", "blocked"} {
		b.complaints(complaint)
	}
	b.open(other.URL)
	b.await("all attacks have ended", `document.getElementById("out").textContent.includes("end") && document.getElementById("out").textContent.includes("events=")`)
	text, err := ask(b, chromedp.Evaluate[string](`document.getElementById("out").textContent`))
	if err != nil || strings.Contains(text, "READ") || !strings.Contains(text, "simple=") {
		t.Errorf("got %q, %v", text, err)
	}
	b.screenshot("other-origin")
	if out := w.output(); strings.Contains(out, "reloaded config") {
		t.Errorf("a page of another origin reloaded weir:\n%s", out)
	}
	if log := w.request("/api/v0/audit"); strings.Contains(log, `"done"`) && strings.Count(log, `"done"`) != strings.Count(log, "/-/page") {
		t.Errorf("a page of another origin changed something: %s", log)
	}
	metrics := w.request("/metrics")
	if !strings.Contains(metrics, `weir_http_requests_refused_total{reason="origin"}`) || strings.Contains(metrics, `weir_http_requests_refused_total{reason="origin"} 0`) {
		t.Errorf("no request was refused because of its origin: the browser has sent none with the session")
	}
}
