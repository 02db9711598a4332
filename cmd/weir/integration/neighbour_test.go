//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// nuisance is something hostile that affects a running weir.
type nuisance struct {
	name string
	// config returns the blocks. Blocks that send use the receivers
	// prometheus.remote_write.away.receiver and loki.write.away.receiver.
	config string
	// act is called ten times per second while the config is active.
	act func(n int)
	// wants is a pattern for the metrics page during the nuisance, or empty.
	wants string
}

// TestInnocentNeighbour: whatever a script, a file or a sender does, another
// pipeline of the same process misses no scrape, and the process stays below 1
// GiB. Each script in testdata/hostile runs for some seconds as a transform of
// metrics, logs or both, depending on the hooks that it defines. Then follow
// files, pushes and a collection that changes continuously.
func TestInnocentNeighbour(t *testing.T) {
	const targets, interval, each = 10, 3 * time.Second, 5 * time.Second
	target, endpoint, away, dir := startLoad(t, 100), startRecorder(t), startRecorder(t), t.TempDir()
	lokiAway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(lokiAway.Close)
	victim := startLoad(t, 200)
	innocent := target.scrapeBlock(targets, interval.String(), "prometheus.remote_write.out.receiver") + fmt.Sprintf(`
prometheus.remote_write "out" {
  endpoint {
    url = %q
  }
}
prometheus.remote_write "away" {
  endpoint {
    url = %q
  }
}
loki.write "away" {
  endpoint {
    url = "%s/loki/api/v1/push"
  }
}
`, endpoint.URL, away.URL, lokiAway.URL)

	lines := filepath.Join(dir, "lines.log")
	write(t, lines, "a first line\n")
	logLines := func(int) {
		appendTo(t, lines, "GET /health 200\nmail to jane.doe@example.org\n"+strings.Repeat("a@b ", 1<<18)+"\n"+strings.Repeat("x", 1<<18)+"\n")
	}
	all := scriptNuisances(t, dir, lines, victim, logLines)
	all = append(all, fileNuisances(t, dir)...)
	all = append(all, pushNuisances(t)...)

	path := filepath.Join(dir, "config.alloy")
	write(t, path, innocent)
	weir := startWeir(t, dir, "--scripts="+filepath.Join(dir, "scripts"))
	first := target.scrapedAfter(t, targets, time.Time{})
	reloads := 0
	reload := func(config string) {
		t.Helper()
		reloads++
		write(t, path+".new", config)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		weir.await(reloads, `reloaded config\.alloy.*`)
	}
	for _, n := range all {
		reload(innocent + "// " + n.name + "\n" + n.config)
		began, tick := time.Now(), time.NewTicker(100*time.Millisecond)
		for i := 0; time.Since(began) < each; i++ {
			if n.act != nil {
				n.act(i)
			}
			<-tick.C
		}
		tick.Stop()
		if n.wants != "" {
			eventually(t, n.name+" is visible", func() error {
				if !regexp.MustCompile(n.wants).MatchString(metricsPage(t, weir)) {
					return fmt.Errorf("the metrics have no %s", n.wants)
				}
				return nil
			})
		}
		peak := peakRSS(t, weir.cmd.Process.Pid)
		t.Logf("%s: %d MiB at the peak", n.name, peak)
		if peak >= 1024 {
			t.Errorf("%s: the process had %d MiB at its peak, want less than 1 GiB", n.name, peak)
		}
		// Each is measured separately. If this is not possible, the peak includes
		// the earlier ones.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", weir.cmd.Process.Pid), []byte("5"), 0)
	}
	reload(innocent)
	target.scrapedAfter(t, targets, time.Now().Add(interval))
	ran := time.Since(first)
	if m := regexp.MustCompile(`(?m)^weir_scrape_missed_total\{.*prometheus\.scrape\.load.*\} [1-9].*$`).FindString(metricsPage(t, weir)); m != "" {
		t.Errorf("scrapes were missed: %s", m)
	}
	for i, n := range target.servedEach(targets) {
		if want := int(ran / interval); n < want {
			t.Errorf("target %d was scraped %d times in %s, want %d", i, n, ran, want)
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for k, seen := range endpoint.scrapes(t) {
		last := 0
		for n := range seen {
			last = max(last, n)
		}
		for n := 1; n <= last; n++ {
			if seen[n] != 1 {
				t.Errorf("%s: scrape %d of %d is there %d times", k, n, last, seen[n])
			}
		}
	}
	t.Logf("%d nuisances in %s", len(all), ran.Round(time.Second))
}

var defines = regexp.MustCompile(`(?m)\b(metrics|series|logs)\b *(=|:|\()`)

// scriptNuisances installs each script of testdata/hostile as hostile.NAME.
func scriptNuisances(t *testing.T, dir, lines string, victim *load, logLines func(int)) (all []nuisance) {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts in testdata/hostile: %v", err)
	}
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("n%d", i)
		write(t, filepath.Join(dir, "scripts", "hostile", name+filepath.Ext(file)), string(text))
		n, receivers := nuisance{name: filepath.Base(file)}, ""
		for _, m := range defines.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "logs" && n.act == nil {
				n.act = logLines
				receivers += ", loki.write.away.receiver"
				n.config += fmt.Sprintf("loki.source.file \"victim\" {\n targets = [{ __path__ = %q, job = \"victim\" }]\n forward_to = [hostile.%s.x.receiver]\n tail_from_end = true\n}\n", lines, name)
			}
			if m[1] != "logs" && !strings.Contains(receivers, "prometheus") {
				receivers += ", prometheus.remote_write.away.receiver"
				n.config += strings.ReplaceAll(victim.scrapeBlock(3, "1s", "hostile."+name+".x.receiver"), `"load"`, `"victim"`)
			}
		}
		if receivers == "" {
			t.Fatalf("%s defines neither metrics nor logs", file)
		}
		n.config += fmt.Sprintf("hostile.%s \"x\" {\n forward_to = [%s]\n}\n", name, strings.TrimPrefix(receivers, ", "))
		all = append(all, n)
	}
	return all
}

// fileNuisances are special files, and a file that changes continuously.
func fileNuisances(t *testing.T, dir string) []nuisance {
	t.Helper()
	fifo, zero := filepath.Join(dir, "fifo"), filepath.Join(dir, "zero")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	churn := filepath.Join(dir, "churn.json")
	targets := func(n int) {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, `, {"id": "%d-%d"}`, n, i)
		}
		if err := os.WriteFile(churn+".new", []byte("["+strings.TrimPrefix(b.String(), ", ")+"]"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(churn+".new", churn); err != nil {
			t.Fatal(err)
		}
	}
	targets(-1)
	return []nuisance{
		{name: "a FIFO for a file", config: fmt.Sprintf("local.file \"x\" {\n filename = %q\n}\n", fifo)},
		{name: "/dev/zero for a file", config: fmt.Sprintf("local.file \"x\" {\n filename = %q\n}\n", zero)},
		{name: "a FIFO for a log", config: fmt.Sprintf("loki.source.file \"x\" {\n targets = [{ __path__ = %q }, { __path__ = %q }]\n forward_to = [loki.write.away.receiver]\n}\n", fifo, zero)},
		{name: "a collection that changes all the time", act: targets, config: fmt.Sprintf(`
local.file "churn" {
  filename = %q
}
foreach "churn" {
  collection = encoding.from_json(local.file.churn.content)
  var        = "each"
  id         = "id"
  template {
    prometheus.relabel "r" {
      forward_to = []
      rule {
        target_label = "id"
        replacement  = each["id"]
      }
    }
  }
}
`, churn)},
	}
}

// pushNuisances are requests that any client could send.
func pushNuisances(t *testing.T) []nuisance {
	t.Helper()
	post := func(url, contentType, encoding string, body []byte) func(int) {
		return func(n int) {
			if n%10 != 0 { // one per second
				return
			}
			go func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
				if err != nil {
					panic(err)
				}
				req.Header.Set("Content-Type", contentType)
				req.Header.Set("Content-Encoding", encoding)
				if resp, err := http.DefaultClient.Do(req); err == nil { // any response is fine
					resp.Body.Close()
				}
			}()
		}
	}
	wide := func(labels int) prompb.TimeSeries {
		ts := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "wide"}}, Samples: []prompb.Sample{{Timestamp: 1, Value: 1}}}
		for i := range labels {
			ts.Labels = append(ts.Labels, prompb.Label{Name: fmt.Sprintf("l%06d", i), Value: "v"})
		}
		return ts
	}
	written := func(all ...prompb.TimeSeries) []byte {
		text, err := (&prompb.WriteRequest{Timeseries: all}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return snappy.Encode(nil, text)
	}
	many := make([]prompb.TimeSeries, 200_000)
	for i := range many {
		many[i] = prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "many"}, {Name: "i", Value: fmt.Sprint(i)}}, Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 1}}}
	}
	metrics, logs := freePort(t), freePort(t)
	receive := fmt.Sprintf("prometheus.receive_http \"x\" {\n http {\n listen_address = \"127.0.0.1\"\n listen_port = %d\n }\n forward_to = [prometheus.remote_write.away.receiver]\n}\n", metrics)
	api := fmt.Sprintf("loki.source.api \"x\" {\n http {\n listen_address = \"127.0.0.1\"\n listen_port = %d\n }\n forward_to = [loki.write.away.receiver]\n}\n", logs)
	write := fmt.Sprintf("http://127.0.0.1:%d/api/v1/metrics/write", metrics)
	push := fmt.Sprintf("http://127.0.0.1:%d/loki/api/v1/push", logs)
	var stream strings.Builder
	for i := range 170_000 {
		fmt.Fprintf(&stream, `,"l%06d":"v"`, i)
	}
	entry := fmt.Sprintf(`["%d","a line"]`, time.Now().UnixNano())
	return []nuisance{
		{name: "a series of 100,000 labels", config: receive, act: post(write, "application/x-protobuf", "snappy", written(wide(100_000)))},
		{name: "200,000 series in a request", config: receive, act: post(write, "application/x-protobuf", "snappy", written(many...))},
		{name: "a stream of 170,000 labels", config: api, act: post(push, "application/json", "", []byte(`{"streams":[{"stream":{"a":"b"`+stream.String()+`},"values":[`+entry+`]}]}`))},
		{name: "a push of 400,000 lines", config: api, act: post(push, "application/json", "", []byte(`{"streams":[{"stream":{"a":"b"},"values":[`+entry+strings.Repeat(","+entry, 400_000)+`]}]}`))},
		{name: "a push that is nested", config: api, act: post(push, "application/json", "", []byte(strings.Repeat(`{"streams":[`, 500_000)))},
	}
}
