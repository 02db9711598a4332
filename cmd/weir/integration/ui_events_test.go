//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// forward returns an address whose connections go to another one, so that the page keeps its address
// while weir restarts at any free port.
func forward(t *testing.T, to func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to())
				if err != nil {
					return // weir does not run
				}
				defer out.Close()
				go func() {
					io.Copy(out, in)
					out.Close() // the browser has closed the connection
				}()
				io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().String()
}

// TestUIEvents: a page follows one stream of changes, only while it is visible, and connects again
// after a restart of weir.
func TestUIEvents(t *testing.T) {
	dir := t.TempDir()
	config := `
http {
	auth {
		basic {
			username = "me"
			password = "secret"
		}
	}
}

prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
	targets         = prometheus.exporter.self.weir.targets
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }
`
	write(t, filepath.Join(dir, "config.alloy"), config)
	w := startWeir(t, dir)
	var address atomic.Value // of weir
	address.Store(strings.TrimPrefix(w.url, "http://"))
	page := forward(t, func() string { return address.Load().(string) })
	b := startBrowser(t)
	b.run(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": "Basic bWU6c2VjcmV0"}})
		return err
	}))
	b.open("http://" + page + "/")
	b.shows("prometheus.echo.default")
	streams := func(what string, want int) {
		t.Helper()
		eventually(t, what, func() error {
			stacks := w.request("/debug/pprof/goroutine?debug=2")
			if got, produced := strings.Count(stacks, ".(*Service).serveLive("), strings.Contains(stacks, ".(*live).run("); got != want || produced != (want > 0) {
				return fmt.Errorf("there are %d streams; the state is computed: %v", got, produced)
			}
			return nil
		})
	}
	visible := func(visible bool) {
		b.do(fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`, !visible))
	}
	streams("the page follows the state", 1)
	b.view("reloads")
	b.shows("start")
	streams("the view of the reloads needs no other stream", 1)
	visible(false)
	streams("a hidden page follows nothing", 0)
	write(t, filepath.Join(dir, "config.alloy"), config+`prometheus.echo "second" { }`)
	b.view("")
	visible(true)
	streams("a visible page follows the state", 1)
	b.shows("prometheus.echo.second")

	write(t, filepath.Join(dir, "config.alloy"), config+`prometheus.echo "third" { }`)
	b.shows("prometheus.echo.third") // an event announced the reload

	b.complaints("Failed to load resource") // while weir does not run
	if code := w.stop(); code != 0 {
		t.Fatalf("weir ended with status %d", code)
	}
	b.shows("weir does not respond.")
	write(t, filepath.Join(dir, "config.alloy"), config+`prometheus.echo "restarted" { }`)
	w = startWeir(t, dir)
	address.Store(strings.TrimPrefix(w.url, "http://"))
	b.shows("prometheus.echo.restarted")
	b.await("the page is connected", `!document.body.innerText.includes("does not respond")`)
	streams("the page follows the state again", 1)
}
