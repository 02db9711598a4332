//go:build integration

package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServicesMoveUnderLoad: weir's port changes to HTTPS and a receiver moves to
// another port, in one reload, while the endpoint is dead, samples are scraped
// and a Prometheus writes. Reloads that would return to plaintext, or use a port
// that is taken, change nothing. Every scrape of both arrives.
func TestServicesMoveUnderLoad(t *testing.T) {
	const pushed, scraped, perTarget = 3, 3, 300
	ca := newIssuer(t)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	cert, key, _ := ca.issue()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cert.pem"), cert)
	write(t, filepath.Join(dir, "key.pem"), key)
	secure := strings.ReplaceAll(secureConfig, "DIR", dir)

	push, pull, sink := startLoad(t, perTarget), startLoad(t, perTarget), startRecorder(t)
	port, other := freePort(t), freePort(t)
	path := filepath.Join(dir, "config.alloy")
	config := func(port int, more string) string {
		return receiveBlock(port, "") + strings.ReplaceAll(pull.scrapeBlock(scraped, "500ms", "prometheus.remote_write.out.receiver"), `job_name        = "load"`, `job_name        = "pull"`) +
			remoteWrite(sink.URL, "") + more
	}
	write(t, path, config(port, ""))
	weir := startWeir(t, dir)
	wire := startLink(t, fmt.Sprint("127.0.0.1:", port))
	_, proxy, err := net.SplitHostPort(wire.addr)
	if err != nil {
		t.Fatal(err)
	}
	var to int
	fmt.Sscan(proxy, &to)
	var jobs strings.Builder
	for i := range pushed {
		fmt.Fprintf(&jobs, "  - job_name: push%d\n    metrics_path: /%d/metrics\n    static_configs: [{targets: [%q], labels: {target: \"%d\"}}]\n",
			i, i, strings.TrimPrefix(push.URL, "http://"), i)
	}
	startPrometheus(t, writesTo(to, "io.prometheus.write.v2.Request", "")+"scrape_configs:\n"+jobs.String())
	flows := func() {
		t.Helper()
		push.scrapedAfter(t, pushed, time.Now())
		pull.scrapedAfter(t, scraped, time.Now())
	}
	eventually(t, "both arrive", func() error {
		if n := len(sink.group("load_total")); n < (pushed+scraped)*perTarget {
			return fmt.Errorf("%d series", n)
		}
		return nil
	})

	sink.set(func(_ int, w http.ResponseWriter, _ *http.Request) bool { return cut(w) })
	flows()
	weir.after(func() { write(t, path, config(other, secure)) }, `reloaded config\.alloy \(.*\), 2 of 5 nodes rebuilt, 1 updated.*"\n`)
	wire.moves(t, fmt.Sprint("127.0.0.1:", other))
	flows()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	addr := strings.TrimPrefix(weir.url, "http://")
	if err := fetchMetrics("https://"+addr+"/metrics", client); err != nil {
		t.Errorf("by HTTPS: %v", err)
	}
	if c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
		c.Close()
		t.Error("the receiver still listens where it was")
	}

	// Not to plaintext and not to a port that is taken.
	weir.after(func() { write(t, path, config(port, "")) }, `cannot reload config\.alloy: .*block http is gone`)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	flows()
	weir.after(func() { write(t, path, config(taken.Addr().(*net.TCPAddr).Port, secure)) }, `msg="cannot serve where it should".*in use`)
	flows()
	weir.after(func() { write(t, path, config(port, secure)) }, `reloaded config\.alloy`)
	wire.moves(t, fmt.Sprint("127.0.0.1:", port))
	flows()
	sink.set(nil)
	flows()

	for name, of := range map[string]struct {
		load    *load
		targets int
	}{"push": {push, pushed}, "pull": {pull, scraped}} {
		upTo := make([]int, of.targets)
		for i := range upTo {
			upTo[i] = of.load.served(i) - 1
		}
		eventually(t, "every scrape of "+name+" arrives", func() error {
			series := map[int]int{}
			group := sink.group("load_total")
			for k, scrapes := range sink.scrapes(t) {
				labels := group[k][0].labels
				if !strings.HasPrefix(labels["job"], name) {
					continue
				}
				var i int
				fmt.Sscan(labels["target"], &i)
				series[i]++
				missing := 0
				for n := 1; n <= upTo[i]; n++ {
					if scrapes[n] > 1 {
						return fatal{fmt.Errorf("%s: scrape %d is there %d times", k, n, scrapes[n])}
					} else if scrapes[n] == 0 {
						missing++
					}
				}
				if n := sink.failed(i); missing > n {
					return fmt.Errorf("%s: %d of %d scrapes are missing, %d failed", k, missing, upTo[i], n)
				}
			}
			for i := range of.targets {
				if series[i] != perTarget {
					return fmt.Errorf("%d series of target %d", series[i], i)
				}
			}
			return nil
		})
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
