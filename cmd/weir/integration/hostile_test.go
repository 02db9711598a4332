//go:build integration

package integration

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scrapedSince returns the number of scrapes of all targets in a period.
func (l *load) scrapedSince(from time.Time, d time.Duration) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.scrapes {
		for _, at := range times {
			if at.After(from) && !at.After(from.Add(d)) {
				n++
			}
		}
	}
	return n
}

// TestFirstScrape: the first target is scraped within a second of the start of
// the process, in the best of three runs. A busy machine gets more time.
func TestFirstScrape(t *testing.T) {
	best, all := time.Hour, time.Hour
	for range 3 {
		target, endpoint, dir := startLoad(t, 10), startRecorder(t), t.TempDir()
		write(t, filepath.Join(dir, "config.alloy"), target.scrapeBlock(100, "1m", "prometheus.remote_write.out.receiver")+
			fmt.Sprintf("prometheus.remote_write \"out\" {\n endpoint {\n url = %q\n }\n}\n", endpoint.URL))
		began := time.Now()
		weir := startWeir(t, dir)
		last := target.scrapedAfter(t, 100, began)
		first := last
		target.mu.Lock()
		for _, times := range target.scrapes {
			if times[0].Before(first) {
				first = times[0]
			}
		}
		target.mu.Unlock()
		best, all = min(best, first.Sub(began)), min(all, last.Sub(began))
		weir.stop()
	}
	t.Logf("the first of 100 targets was asked after %s, the last after %s", best, all)
	if best > 10*time.Second { // of an interval of 60 s
		t.Errorf("the first scrape came %s after the start, want 1s on an idle machine", best)
	}
}

// TestFrozen: a process that was stopped for 20 s scrapes at its normal pace
// immediately, does not catch up on missed scrapes, and loses no samples.
func TestFrozen(t *testing.T) {
	t.Parallel()
	const targets = 50
	const interval = 5 * time.Second
	target, endpoint, dir := startLoad(t, 20), startRecorder(t), t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), target.scrapeBlock(targets, interval.String(), "prometheus.remote_write.out.receiver")+
		fmt.Sprintf("prometheus.remote_write \"out\" {\n endpoint {\n url = %q\n remote_timeout = \"5s\"\n }\n}\n", endpoint.URL))
	weir := startWeir(t, dir)
	first := target.scrapedAfter(t, targets, time.Time{})
	target.scrapedAfter(t, targets, first.Add(interval))
	if err := weir.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(20 * time.Second)
	resumed := time.Now()
	if err := weir.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	target.scrapedAfter(t, targets, resumed.Add(interval))
	if n := target.scrapedSince(resumed, interval); n < targets/2 { // an interval of 2s shows this if the machine is not busy
		t.Errorf("%d of %d targets were asked in the first interval", n, targets)
	}
	// In its own slots, each target is scraped once per interval, so a tenth of a
	// second contains only some of them.
	if n := target.scrapedSince(resumed, time.Second); n > targets/2 {
		t.Errorf("%d of %d targets were asked in the first second", n, targets)
	}
	t.Logf("scrapes in 1s, 2s and 5s after it went on: %d, %d, %d of %d targets", target.scrapedSince(resumed, time.Second),
		target.scrapedSince(resumed, 2*time.Second), target.scrapedSince(resumed, interval), targets)
	page := metricsPage(t, weir)
	missed := 0
	for _, m := range regexp.MustCompile(`(?m)^weir_scrape_missed_total\{.*\} (\d+)$`).FindAllStringSubmatch(page, -1) {
		missed, _ = strconv.Atoi(m[1])
	}
	if missed < targets/2 { // a busy machine misses more
		t.Errorf("%d scrapes are counted as missed, want about %d", missed, targets)
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if strings.Contains(weir.output(), "cannot send") {
		t.Error("the endpoint was blamed")
	}
	for k, seen := range endpoint.scrapes(t) {
		for n, times := range seen {
			if times > 1 {
				t.Errorf("%s: scrape %d is there %d times", k, n, times)
			}
		}
	}
}

// peakRSS returns the peak memory of a process, in MiB.
func peakRSS(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(data)
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// TestHostileTargets: targets that stream without end, hang, or send compression
// bombs, binary data, labels of a megabyte or 100,000 series are limited, counted
// and reported, and the other targets are scraped normally.
func TestHostileTargets(t *testing.T) {
	var bomb bytes.Buffer
	gz := gzip.NewWriter(&bomb)
	for range 1 << 10 { // 1 GB that is compressed to 1 MB
		gz.Write(make([]byte, 1<<20))
	}
	gz.Close()
	stream := func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte("# nothing but comments, again and again\n"), 1<<14)
		for sent := 0; sent < 1<<30 && r.Context().Err() == nil; sent += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	mux := http.NewServeMux()
	for i := range 4 {
		mux.HandleFunc(fmt.Sprintf("/stream/%d", i), stream)
	}
	mux.HandleFunc("/bomb/0", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	})
	mux.HandleFunc("/hang/0", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "a 1\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/utf8/0", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a{l=\"\xff\xfe\"} 1\n") })
	mux.HandleFunc("/long/0", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 20 {
			fmt.Fprintf(w, "long{i=\"%d\",l=\"%s\"} 1\n", i, strings.Repeat(string(rune('a'+i)), 1<<20))
		}
	})
	mux.HandleFunc("/wide/0", func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		for i := range 100_000 {
			fmt.Fprintf(&b, "wide{i=\"%d\",path=\"/some/realistic/path\",method=\"GET\",code=\"200\"} 1\n", i)
		}
		w.Write(b.Bytes())
	})
	hostile := httptest.NewServer(mux)
	t.Cleanup(hostile.CloseClientConnections)
	t.Cleanup(hostile.Close)

	const good = 10
	target, endpoint, dir := startLoad(t, 100), startRecorder(t), t.TempDir()
	var list strings.Builder
	for _, path := range []string{"stream/0", "stream/1", "stream/2", "stream/3", "bomb/0", "hang/0", "utf8/0", "long/0", "wide/0"} {
		fmt.Fprintf(&list, "{ __address__ = %q, __metrics_path__ = \"/%s\", kind = %q },\n", strings.TrimPrefix(hostile.URL, "http://"), path, path)
	}
	write(t, filepath.Join(dir, "config.alloy"), target.scrapeBlock(good, "1s", "prometheus.remote_write.out.receiver")+fmt.Sprintf(`
prometheus.scrape "hostile" {
  targets         = [%s]
  scrape_interval = "10s"
  scrape_timeout  = "9s"
  forward_to      = [prometheus.remote_write.out.receiver]
}
prometheus.remote_write "out" {
  endpoint {
    url = %q
  }
}
`, list.String(), endpoint.URL))
	weir := startWeir(t, dir)
	began := time.Now()
	eventually(t, "the targets are scraped and told of", func() error {
		for _, kind := range []string{"stream/0", "stream/1", "stream/2", "stream/3", "bomb/0"} {
			if !regexp.MustCompile(`scrape failed.*/` + kind + `.*(body size limit exceeded|large bodies)`).MatchString(weir.output()) {
				return fmt.Errorf("%s is not told of", kind)
			}
		}
		for _, want := range []string{`scrape failed.*/hang/0.*timeout`, `scrape failed.*/utf8/0.*(?i)utf-?8`} {
			if !regexp.MustCompile(want).MatchString(weir.output()) {
				return fmt.Errorf("there is no %s", want)
			}
		}
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		n := map[string]int{}
		for _, s := range endpoint.bySeries {
			n[s.labels["__name__"]]++
		}
		if n["wide"] != 100_000 || n["long"] != 20 {
			return fmt.Errorf("%d wide and %d long series came", n["wide"], n["long"])
		}
		return nil
	})
	target.scrapedAfter(t, good, began.Add(25*time.Second)) // two and a half rounds
	late := 0
	target.mu.Lock()
	for path, times := range target.scrapes {
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap > 2*time.Second {
				late++
				t.Logf("%s was not asked for %s", path, gap)
			}
		}
	}
	target.mu.Unlock()
	if late > good { // the machine may be busy
		t.Errorf("the others were scraped late %d times", late)
	}
	peak := peakRSS(t, weir.cmd.Process.Pid)
	t.Logf("peak memory: %d MiB", peak)
	if peak > 1536 {
		t.Errorf("it took %d MiB", peak)
	}
	for _, want := range []string{`weir_scrape_scrapes_total\{.*hostile.*outcome="body_size_limit"\} [1-9]`, `outcome="timeout"\} [1-9]`, `outcome="invalid_body"\} [1-9]`} {
		if !regexp.MustCompile(want).MatchString(metricsPage(t, weir)) {
			t.Errorf("no metric %s", want)
		}
	}
	// One of them is always in flight; weir does not wait for it.
	stopping := time.Now()
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if took := time.Since(stopping); took > 8*time.Second { // less than the hanging targets would take
		t.Errorf("it ended %s after SIGTERM", took)
	}
	for k, seen := range endpoint.scrapes(t) {
		for n := 1; n < len(seen); n++ {
			if seen[n] != 1 {
				t.Errorf("%s: scrape %d is there %d times", k, n, seen[n])
			}
		}
	}
}
