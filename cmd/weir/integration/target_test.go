//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// load is a target in which the value of every series is the number of the
// scrape, so that a lost scrape is always visible as a gap.
type load struct {
	*httptest.Server
	perTarget int

	mu      sync.Mutex
	scrapes map[string][]time.Time // by path: the times of the requests
}

// startLoad serves /0/metrics, /1/metrics, …, each with `series` series named
// load_total and one named load_flag, which is always 1.
func startLoad(t *testing.T, series int) *load {
	l := &load{perTarget: series, scrapes: map[string][]time.Time{}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *load) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.scrapes[r.URL.Path] = append(l.scrapes[r.URL.Path], time.Now())
	n := len(l.scrapes[r.URL.Path])
	l.mu.Unlock()
	var b bytes.Buffer
	b.WriteString("# TYPE load_flag gauge\nload_flag 1\n# TYPE load_total counter\n")
	for i := range l.perTarget {
		b.WriteString(`load_total{i="`)
		b.WriteString(strconv.Itoa(i))
		b.WriteString(`",path="/some/realistic/path",method="GET",code="200"} `)
		b.WriteString(strconv.Itoa(n))
		b.WriteByte('\n')
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	w.Write(b.Bytes())
}

// served returns the number of scrapes of a target.
func (l *load) served(target int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.scrapes[fmt.Sprintf("/%d/metrics", target)])
}

// servedEach returns the number of scrapes of the targets 0, 1, ….
func (l *load) servedEach(targets int) (n []int) {
	for i := range targets {
		n = append(n, l.served(i))
	}
	return n
}

// scrapedAfter waits until the targets 0, 1, … were scraped again after t and
// returns the time of the last of these scrapes.
func (l *load) scrapedAfter(t *testing.T, targets int, after time.Time) (last time.Time) {
	t.Helper()
	all := make([]int, targets)
	for i := range all {
		all[i] = i
	}
	return l.eachScrapedAfter(t, all, after)
}

func (l *load) eachScrapedAfter(t *testing.T, targets []int, after time.Time) (last time.Time) {
	t.Helper()
	eventually(t, "every target is scraped again", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		last = time.Time{}
		for _, i := range targets {
			at := l.scrapes[fmt.Sprintf("/%d/metrics", i)]
			k := len(at)
			for k > 0 && at[k-1].After(after) {
				k--
			}
			if k == len(at) {
				return fmt.Errorf("target %d is still to come", i)
			}
			if at[k].After(last) {
				last = at[k]
			}
		}
		return nil
	})
	return last
}

// scrapeBlock returns a prometheus.scrape block for the first n targets.
func (l *load) scrapeBlock(n int, interval, forward string) string {
	var targets strings.Builder
	for i := range n {
		fmt.Fprintf(&targets, "    { \"__address__\" = %q, \"__metrics_path__\" = \"/%d/metrics\", \"target\" = \"%d\" },\n",
			strings.TrimPrefix(l.URL, "http://"), i, i)
	}
	return fmt.Sprintf(`
prometheus.scrape "load" {
  targets = [
%s  ]
  job_name        = "load"
  scrape_interval = %q
  scrape_timeout  = %q
  forward_to      = [%s]
}
`, targets.String(), interval, interval, forward)
}

// batchDropped is the log message for a scrape that was refused until the next
// one was due.
const batchDropped = `msg="batch was dropped"`

// droppedBatches returns the number of these messages for a target.
func droppedBatches(output string, target int) (n int) {
	for line := range strings.Lines(output) {
		if strings.Contains(line, batchDropped) && strings.Contains(line, fmt.Sprintf("/%d/metrics ", target)) {
			n++
		}
	}
	return n
}

// unheard returns the number of scrapes of a target that are missing according to
// weir, because they failed or were refused. There may be some on a busy machine.
func unheard(t *testing.T, prometheus, output, selector string, target int) int {
	t.Helper()
	failed, err := number(prometheus, fmt.Sprintf(`sum(count_over_time(up{%[1]s}[30m]) - sum_over_time(up{%[1]s}[30m]))`, selector), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return int(failed) + droppedBatches(output, target)
}
