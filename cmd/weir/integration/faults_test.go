//go:build integration

package integration

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// dropped matches counters of dropped samples that are not 0.
var dropped = regexp.MustCompile(`(?m)^weir_\w*dropped_total\{.*\} [^0\n].*$`)

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func metricsPage(t *testing.T, weir *weirRun) string {
	t.Helper()
	return fetch(t, weir.url+"/metrics")
}

// remoteWriteID is the ID of the node that remoteWrite configures.
const remoteWriteID = "prometheus.remote_write.out"

// metricsOf returns the series of a counter or gauge on weir's metrics page.
func metricsOf(t *testing.T, page, name string) []*dto.Metric {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	fams, err := p.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return fams[name].GetMetric()
}

func valueOf(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// labelOf returns the value of a label of a series, or "" if it does not exist.
func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// counter returns the sum of a counter of the sink, for one reason or for all
// ("").
func counter(t *testing.T, page, name, reason string) float64 {
	t.Helper()
	return counterOf(t, page, remoteWriteID, name, reason)
}

// counterOf returns the sum of a counter of a node, for one reason or for all
// ("").
func counterOf(t *testing.T, page, id, name, reason string) (sum float64) {
	t.Helper()
	for _, m := range metricsOf(t, page, name) {
		if labelOf(m, "component_id") == id && (reason == "" || labelOf(m, "reason") == reason) {
			sum += valueOf(m)
		}
	}
	return sum
}

// cut closes the connection without a response.
func cut(http.ResponseWriter) bool { panic(http.ErrAbortHandler) }

// faulty responds like an endpoint with problems: each kind of problem occurs in
// one of ten requests.
func faulty(n int, w http.ResponseWriter, r *http.Request) bool {
	switch n % 10 {
	case 1:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case 3:
		w.WriteHeader(http.StatusInternalServerError)
	case 5:
		return cut(w)
	case 6:
		io.CopyN(io.Discard, r.Body, 1000)
		return cut(w)
	case 8:
		select { // hangs
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	default:
		return false
	}
	return true
}

// TestFaultyEndpoint checks that lost samples are counted and that the other
// samples arrive in order, whatever the endpoint does. A rejected request of
// several blocks is divided and sent again, so only the samples that the endpoint
// always rejects are lost.
func TestFaultyEndpoint(t *testing.T) {
	t.Parallel()
	const targets, perTarget = 10, 500
	target := startLoad(t, perTarget)
	endpoint := startRecorder(t)
	endpoint.set(faulty)
	endpoint.reject = func(n int) bool { return n%20 == 12 }
	dir := t.TempDir()
	sink := fmt.Sprintf(`
prometheus.remote_write "out" {
  endpoint {
    url            = %q
    remote_timeout = "1s"
  }
}
`, endpoint.URL)
	config := filepath.Join(dir, "config.alloy")
	write(t, config, target.scrapeBlock(targets, "300ms", "prometheus.remote_write.out.receiver")+sink)
	weir := startWeir(t, dir)
	eventually(t, "120 requests came", func() error {
		endpoint.mu.Lock()
		defer endpoint.mu.Unlock()
		if endpoint.requests < 120 {
			return fmt.Errorf("%d", endpoint.requests)
		}
		return nil
	})
	write(t, config, sink) // the source ends its series and is removed
	weir.await(1, `reloaded config\.alloy.*`)
	var in, sent, rejected float64
	eventually(t, "the counters add up", func() error {
		page := metricsPage(t, weir)
		in = counter(t, page, "weir_component_samples_in_total", "")
		sent = counter(t, page, "weir_remote_write_samples_sent_total", "")
		rejected = counter(t, page, "weir_remote_write_samples_dropped_total", "rejected")
		if in != sent+rejected {
			return fmt.Errorf("%v in, %v sent, %v rejected", in, sent, rejected)
		}
		return nil
	})
	if retried := counter(t, metricsPage(t, weir), "weir_remote_write_samples_retried_total", ""); retried == 0 {
		t.Error("nothing was sent again: the endpoint had no faults")
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	if got := float64(len(endpoint.rejected)); got != rejected || got == 0 {
		t.Errorf("the endpoint rejected %v samples, weir says %v", got, rejected)
	}
	if got := float64(endpoint.total()); got != sent {
		t.Errorf("the endpoint has %v samples, weir says it sent %v", got, sent)
	}

	for k, scrapes := range endpoint.scrapes(t) {
		for n, times := range scrapes {
			if times != 1 {
				t.Errorf("%s: scrape %d is there %d times", k, n, times)
			}
		}
	}
}
