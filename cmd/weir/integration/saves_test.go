//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	saveTargets = 10
	saveSeries  = 1000 // 10 × 1,000 at 500 ms: 20,000 samples per second
	saves       = 200
)

// version returns a script that marks load_flag and one in ten series of
// load_total with its version and does not change other series.
func version(n int) string {
	return fmt.Sprintf(`local weir = require "weir"
return weir.transform {
  series = function(s, ctx)
    if s.name == "load_flag" or s.labels.i and s.labels.i %% 10 == 0 then s.labels.v = "%d" end
  end,
}
`, n)
}

func TestSavesUnderLoad(t *testing.T) {
	target := startLoad(t, saveSeries)
	prometheus := startPrometheus(t, "")
	dir := t.TempDir()
	script := filepath.Join(dir, "scripts", "demo", "mark.lua")
	write(t, script, version(0))
	write(t, filepath.Join(dir, "config.alloy"),
		target.scrapeBlock(saveTargets, "500ms", "demo.mark.default.receiver")+`
demo.mark "default" {
  forward_to = [prometheus.remote_write.out.receiver]
}
`+remoteWrite(prometheus, ""))
	weir := startWeir(t, dir)
	target.scrapedAfter(t, saveTargets, time.Now())

	right := make([]time.Time, 0, saves) // the time from which version n+1 must be the only one
	for n := 1; n <= saves; n++ {
		if n%20 == 0 { // a mistake: the previous version continues
			write(t, script, version(n)+"a mistake\n")
			weir.await(n/20, `cannot reload demo\.mark\S+ running version \w+; \w+ refused by compile: \S*mark\.lua:7:`)
		}
		if n%3 == 0 { // like vim
			write(t, script+".new", version(n))
			if err := os.Rename(script+".new", script); err != nil {
				t.Fatal(err)
			}
		} else { // like most other editors
			write(t, script, version(n))
		}
		weir.await(n, `reloaded demo\.mark.*`)
		right = append(right, target.scrapedAfter(t, saveTargets, time.Now()))
	}
	target.scrapedAfter(t, saveTargets, time.Now())
	served := target.servedEach(saveTargets)
	for i, n := range served {
		arrived(t, prometheus, i, n)
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}

	// One scrape after each save, only the new version exists, for the targets
	// that were scraped in time.
	down := 0
	for i, at := range right {
		at = at.Add(10 * time.Millisecond)
		n, err := number(prometheus, "sum(load_flag)", at)
		if err != nil {
			t.Fatal(err)
		}
		up, err := number(prometheus, "sum(up)", at)
		if err != nil {
			t.Fatal(err)
		}
		if n != up {
			t.Errorf("save %d: sum(load_flag) = %v of %v targets: %v", i+1, n, up, mustQuery(t, prometheus, "count by (v) (load_flag)", at))
		}
		down += saveTargets - int(up)
	}

	// In each series, no scrape is missing or duplicate. A scrape that failed or
	// was refused for too long has up = 0 or is in the log, and is missing in
	// every series of its target.
	allLost := 0
	for target := range saveTargets {
		lost := unheard(t, prometheus, weir.output(), fmt.Sprintf(`target="%d"`, target), target)
		allLost += lost
		missing := map[int]int{}         // scrape → series that lack it
		seen := map[string]map[int]int{} // series without its version → scrape → times
		for _, s := range mustQuery(t, prometheus, fmt.Sprintf(`load_total{target="%d"}[30m]`, target), time.Time{}) {
			k := s.key("v")
			if seen[k] == nil {
				seen[k] = map[int]int{}
			}
			for _, n := range s.sequence(t) {
				seen[k][n]++
			}
		}
		if len(seen) != saveSeries {
			t.Errorf("target %d: %d series, want %d", target, len(seen), saveSeries)
		}
		for k, scrapes := range seen {
			for n := 1; n < served[target]; n++ {
				switch scrapes[n] {
				case 0:
					missing[n]++
				case 1:
				default:
					t.Errorf("%s: scrape %d is there %d times", k, n, scrapes[n])
				}
			}
		}
		for n, series := range missing {
			if series != saveSeries || lost < len(missing) {
				t.Errorf("target %d: scrape %d of %d is missing in %d of %d series; weir says %d are", target, n, served[target], series, saveSeries, lost)
			}
		}
	}
	// Saves lose nothing; scrapes only fail because the machine is busy. If half
	// of them failed, the test would prove nothing.
	if all := served[0] * saveTargets; down+allLost > all/2 {
		t.Errorf("%d of %d scrapes failed", down+allLost, all)
	}
}

// arrived waits until the server has a scrape of a target or a later one, which
// shows that the target is still scraped.
func arrived(t *testing.T, prometheus string, target, scrape int) {
	t.Helper()
	eventually(t, "the last scrapes arrive", func() error {
		n, err := number(prometheus, fmt.Sprintf(`max(max_over_time(load_total{target="%d"}[30m]))`, target), time.Time{})
		if err == nil && int(n) < scrape {
			return fmt.Errorf("scrape %v of %d of target %d", n, scrape, target)
		}
		return err
	})
}
