package write_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/loki/write"
)

// TestUnreachable: if nothing listens, a retry takes place every 30 s, whatever
// max_backoff_period is. Nothing can listen on port 0.
func TestUnreachable(t *testing.T) {
	const url = "http://127.0.0.1:0/"
	c := naps{clocktest.New(time.Unix(0, t0)), 30 * time.Second, make(chan time.Duration, 10)}
	n := start(t, componenttest.New(t, id), c, endpoint(url, "min_backoff_period = \"30s\"\nmax_backoff_period = \"5m\"")+`journal { max_age = "100h" }`)
	n.accept(t, long(lines(1, stream("s", "a"), 3, t0)))
	timeout := time.After(2 * time.Minute) // the machine may be busy
	for range 4 {
		select {
		case d := <-c.begun:
			c.Advance(d)
		case <-timeout:
			t.Fatal("a pause is longer")
		}
	}
}

// TestLongestPause: the pauses protect an endpoint that responds, and the
// configured pauses apply if the number of retries is limited.
func TestLongestPause(t *testing.T) {
	f := func(more string, status int, want time.Duration) {
		t.Helper()
		url := "http://127.0.0.1:0/"
		if status != 0 {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			defer srv.Close()
			url = srv.URL
		}
		got, err := write.LongestPause(componenttest.New(t, id).Options(), decode(t, endpoint(url, more)).Endpoints[0])
		if got != want || err != nil {
			t.Errorf("%s, status %d: got %s, %v, want %s", more, status, got, err, want)
		}
	}
	const usual = "min_backoff_period = \"500ms\"\n"
	f(usual, 0, 30*time.Second)
	f(usual, 503, 5*time.Minute)
	f(usual, 429, 5*time.Minute)
	f(usual+`max_backoff_retries = 10`, 0, 5*time.Minute)
	f(usual+`max_backoff_period = "10s"`, 0, 10*time.Second)
	f("min_backoff_period = \"1m\"", 0, time.Minute)
	f(usual+`proxy_url = "http://127.0.0.1:0"`, 0, 30*time.Second)
}
