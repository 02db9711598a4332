//go:build integration

package integration

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// TestKills kills weir with SIGKILL repeatedly, with the endpoint up, down and
// faulty. Accepted samples arrive, in order, and each scrape arrives completely
// or not at all. Only failed scrapes and the last ones requested before a kill
// may be missing.
func TestKills(t *testing.T) {
	t.Parallel()
	const targets, perTarget, kills = 10, 500, 9
	target := startLoad(t, perTarget)
	endpoint := startRecorder(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), target.scrapeBlock(targets, "300ms", "prometheus.remote_write.out.receiver")+remoteWrite(endpoint.URL, ""))
	last := make([]map[int]bool, targets) // by target: scrapes that a kill may have interrupted
	for i := range last {
		last[i] = map[int]bool{}
	}
	before, output := 0.0, ""
	for k := range kills {
		switch k % 3 {
		case 0:
			endpoint.set(nil)
		case 1:
			endpoint.set(func(_ int, w http.ResponseWriter, _ *http.Request) bool { return cut(w) })
		case 2:
			endpoint.set(faulty)
		}
		weir := startWeir(t, dir)
		target.scrapedAfter(t, targets, time.Now().Add(time.Duration(k)*130*time.Millisecond))
		before += accepted(t, weir)
		weir.kill()
		output += weir.output()
		for i := range last {
			last[i][target.served(i)] = true
		}
	}
	endpoint.set(nil)
	weir := startWeir(t, dir)
	target.scrapedAfter(t, targets, time.Now())
	end := target.servedEach(targets)
	drained(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	output += weir.output()
	arrivedWhole(t, target, endpoint, before, last, end, output)
}

// arrivedWhole fails the test unless all accepted samples have arrived in order
// and each scrape has arrived completely or not at all. A scrape may only be
// missing if it failed, is in last, by target, or is not before end.
func arrivedWhole(t *testing.T, target *load, endpoint *recorder, before float64, last []map[int]bool, end []int, output string) {
	t.Helper()
	if got := endpoint.total(); float64(got) < before || before == 0 {
		t.Errorf("%d samples arrived, %v were accepted before the kills", got, before)
	}
	missing, failed := map[string]int{}, map[int]map[int]bool{}
	series := endpoint.group("load_total")
	for k, scrapes := range endpoint.scrapes(t) {
		var i int
		if _, err := fmt.Sscan(series[k][0].labels["target"], &i); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < end[i]; n++ {
			switch scrapes[n] {
			case 0:
				missing[fmt.Sprintf("scrape %d of target %d", n, i)]++
				if last[i][n] {
					continue
				}
				if failed[i] == nil {
					failed[i] = map[int]bool{}
				}
				failed[i][n] = true
			case 1:
			default:
				t.Fatalf("%s: scrape %d is there %d times", k, n, scrapes[n])
			}
		}
	}
	for i, scrapes := range failed {
		if n := endpoint.failed(i) + droppedBatches(output, i); len(scrapes) > n {
			t.Errorf("target %d: scrapes %v are missing, weir says %d failed", i, scrapes, n)
		}
	}
	for what, n := range missing {
		if n != target.perTarget {
			t.Errorf("%s is there in part: it is missing in %d of %d series", what, n, target.perTarget)
		}
	}
}

// drained waits until nothing is pending at the sinks and each of them has
// accepted something. The default sink is that of remoteWrite.
func drained(t *testing.T, weir *weirRun, sinks ...string) {
	t.Helper()
	if sinks == nil {
		sinks = []string{remoteWriteID}
	}
	for _, id := range sinks {
		eventually(t, "the journal of "+id+" is empty", func() error {
			page := metricsPage(t, weir)
			if counterOf(t, page, id, "weir_component_samples_in_total", "") == 0 {
				return errors.New("it has taken nothing")
			}
			if n := counterOf(t, page, id, "weir_journal_pending_blocks", ""); n > 0 {
				return fmt.Errorf("%v blocks", n)
			}
			return nil
		})
	}
}
