package pump_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/pump"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// TestRun pumps until the sink has received a number of requests, and compares
// the number of samples with that of the sink.
func TestRun(t *testing.T) {
	o := target.Defaults()
	o.Targets, o.Series = 3, 100
	targets, err := target.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	writes, err := sink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- targets.Serve(serving) }()
	go func() { ended <- writes.Serve(serving) }()
	defer func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}()
	ctx, enough := context.WithCancel(t.Context())
	var asked atomic.Int64
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writes.Handler().ServeHTTP(w, r)
		if asked.Add(1) == 20 {
			enough()
		}
	}))
	defer between.Close()
	n, err := pump.Run(ctx, pump.Options{Targets: targets.Addresses(), Write: between.URL + "/api/v1/write", Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	// Requests that were answered at the very end may not be counted.
	if st := writes.Stats(false); n > st.Samples || n < st.Samples-2*100 || n < 18*100 || st.Invalid > 0 {
		t.Errorf("pumped %d samples, the sink has %+v", n, st)
	}
}

func TestErrors(t *testing.T) {
	f := func(want string, get, post int) {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status := get
			if r.Method == http.MethodPost {
				status = post
			}
			w.WriteHeader(status)
			w.Write([]byte("a 1\n"))
		}))
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := pump.Run(ctx, pump.Options{Targets: []string{strings.TrimPrefix(s.URL, "http://")}, Write: s.URL, Workers: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	f("cannot scrape: ", 500, 204)
	f("cannot write: ", 200, 500)
}
