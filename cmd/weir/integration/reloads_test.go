//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReloadsUnderLoad changes the path of the samples three times per second:
// directly, through rules, through a script, or through both. Nodes are added and
// removed, rules and interval change, and an endpoint is added and removed. Every
// scrape arrives once, in order, and an old series never overlaps the new one.
// The second endpoint is a Prometheus that accepts no out-of-order samples.
func TestReloadsUnderLoad(t *testing.T) {
	const targets, perTarget, changes = 8, 300, 60
	target := startLoad(t, perTarget)
	first, strict := startRecorder(t), startPrometheusWindow(t, "0s", "")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scripts", "demo", "mark.lua"), `local weir = require "weir"
return weir.transform { series = function(s, ctx) if s.labels.i then s.labels.s = "1" end end }
`)
	path := filepath.Join(dir, "config.alloy")
	config := func(n int) string {
		const out, rules, script = "prometheus.remote_write.out.receiver", "prometheus.relabel.r.receiver", "demo.mark.m.receiver"
		way := [][]string{{out}, {rules, out}, {rules, script, out}, {script, out}, {rules, out}, {script, out}, {rules, script, out}}[n%7]
		var b strings.Builder
		b.WriteString(target.scrapeBlock(targets, []string{"500ms", "400ms", "500ms"}[n%3], way[0]))
		for i, at := range way {
			switch at {
			case rules:
				fmt.Fprintf(&b, "prometheus.relabel \"r\" {\n  rule {\n    source_labels = [\"i\"]\n    regex = \".+\"\n    target_label = \"r\"\n    replacement = \"%d\"\n  }\n  forward_to = [%s]\n}\n", n%5, way[i+1])
			case script:
				fmt.Fprintf(&b, "demo.mark \"m\" {\n  forward_to = [%s]\n}\n", way[i+1])
			}
		}
		more := ""
		if n%4 < 2 {
			more = "endpoint {\n    name = \"strict\"\n    url  = \"" + strict + "/api/v1/write\"\n  }"
		}
		b.WriteString(remoteWrite(first.URL, more))
		return b.String()
	}
	write(t, path, config(0))
	weir := startWeir(t, dir)
	target.scrapedAfter(t, targets, time.Now())
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for n := 1; n <= changes; n++ {
		write(t, path+".new", config(n))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		weir.await(n, `reloaded config\.alloy.*`)
		<-tick.C
	}
	target.scrapedAfter(t, targets, time.Now())
	for _, line := range dropped.FindAllString(metricsPage(t, weir), -1) {
		// Samples in flight to the second endpoint when it is removed are
		// dropped. The log shows which scrapes were late on a busy machine.
		if strings.Contains(line, `reason="endpoint_removed"`) {
			continue
		}
		if !strings.Contains(line, `reason="refused"`) || !strings.Contains(weir.output(), batchDropped) {
			t.Errorf("samples were dropped: %s", line)
		}
	}
	for name, n := range map[string]string{"out of order": "prometheus_tsdb_out_of_order_samples_total", "too old": "prometheus_tsdb_too_old_samples_total"} {
		for _, l := range strings.Split(fetch(t, strict+"/metrics"), "\n") {
			if strings.HasPrefix(l, n) && !strings.HasSuffix(l, " 0") {
				t.Errorf("Prometheus found samples %s: %s", name, l)
			}
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	seen := first.scrapes(t, "r", "s")
	if len(seen) != targets*perTarget {
		t.Errorf("%d series, want %d", len(seen), targets*perTarget)
	}
	series, wrong := first.group("load_total", "r", "s"), 0
	for k, scrapes := range seen {
		var i, missing int
		if _, err := fmt.Sscan(series[k][0].labels["target"], &i); err != nil {
			t.Fatal(err)
		}
		last := 0
		for n := range scrapes {
			last = max(last, n)
		}
		for n := 1; n <= last; n++ {
			if scrapes[n] == 0 {
				missing++
			} else if scrapes[n] != 1 && wrong < 5 {
				wrong++
				t.Errorf("%s: scrape %d of %d is there %d times", k, n, last, scrapes[n])
			}
		}
		if n := first.failed(i) + droppedBatches(weir.output(), i); missing > n && wrong < 5 {
			wrong++
			t.Errorf("%s: %d scrapes of %d are missing, %d failed", k, missing, last, n)
		}
		if last < changes/2 {
			t.Fatalf("%s: only %d scrapes", k, last)
		}
	}
	// Series that a reload replaced have ended. The last series have not, because
	// weir stopped.
	samples, alive := 0, 0
	for k, ss := range first.group("load_total", "r", "s") {
		samples += beside(ss)
		n := 0
		for _, s := range ss {
			if !s.ended() {
				n++
			}
		}
		if n > 1 {
			t.Fatalf("%s: %d of %d series have not ended, want 1", k, n, len(ss))
		}
		alive += n
	}
	if alive == 0 {
		t.Error("all series have ended: weir sent staleness markers when it stopped")
	}
	if samples > 0 {
		t.Errorf("%d samples came before an old series had ended", samples)
	}
}
