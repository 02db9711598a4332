//go:build integration

package integration

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// link returns the output of weir page.
func (w *weirRun) link() string {
	w.t.Helper()
	out, err := exec.Command(env(w.t, "WEIR"), "page", "--storage.path="+w.storage).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestForeignPages: a page served by a route of a component, which has weir's
// address, cannot use weir's API in a browser with a session. The browser also
// does not send the session to a server on another port.
func TestForeignPages(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
my.echo "in" {
  forward_to = []
}
`)
	write(t, filepath.Join(dir, "scripts/my/echo.lua"), `
local weir = require "weir"
return weir.source {
  http = {
    ["GET /page"] = function(req, ctx)
      return { status = 200, headers = { ["Content-Type"] = "text/html" }, body = req.query.html }
    end,
  },
}
`)
	w := startWeir(t, dir)
	b := startBrowser(t)
	b.open(w.link())
	b.await("the session shows the nodes", `document.querySelector("main").innerText.includes("my.echo.in")`)
	const script = `<p id="out">nothing ran</p><script>
		const out = document.getElementById("out");
		fetch("/-/reload", {method: "POST"}).then(r => out.textContent = "reload: " + r.status, e => out.textContent = "reload: " + e);
	</script>`
	b.complaints("blocked script execution") // of the page, which is sandboxed
	b.open(w.url + "/api/v0/component/my.echo.in/page?html=" + url.QueryEscape(script))
	b.await("the script of the page does not run", `document.getElementById("out")?.textContent == "nothing ran"`)
	if out := w.output(); strings.Contains(out, "reloaded config") {
		t.Errorf("the page of the route reloaded weir:\n%s", out)
	}

	var mu sync.Mutex
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Cookie"))
	}))
	b.open(other.URL)
	other.Close() // waits for the handler
	if len(got) == 0 || strings.Join(got, "") != "" {
		t.Errorf("a server on another port got cookies %q", got)
	}
}
