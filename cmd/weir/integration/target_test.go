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

// load is a target whose every series has the number of the scrape as its
// value: a gap in a series is a lost scrape, and cannot be hidden.
type load struct {
	*httptest.Server
	perTarget int

	mu      sync.Mutex
	scrapes map[string][]time.Time // by path: when each request came
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

// served returns how often a target was scraped.
func (l *load) served(target int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.scrapes[fmt.Sprintf("/%d/metrics", target)])
}

// scrapedAfter waits until every target was asked again after t, and returns
// when the last of them was.
func (l *load) scrapedAfter(t *testing.T, targets int, after time.Time) (last time.Time) {
	t.Helper()
	eventually(t, "every target is scraped again", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		last = time.Time{}
		for i := range targets {
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

// scrapeBlock is a prometheus.scrape block of the first n targets.
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
