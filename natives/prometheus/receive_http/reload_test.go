package receivehttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/flow/flowtest"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

// TestHundredReloads: no request fails and every sample arrives once while arguments
// other than the address change a hundred times.
func TestHundredReloads(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var sent atomic.Int64
	did := make(chan struct{}, 1)
	for i := range 4 {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 1}}
		wg.Go(func() {
			defer c.CloseIdleConnections()
			for n := int64(0); ctx.Err() == nil; n++ {
				req := r.request(v1, one(t, fmt.Sprint("m", i), n, 1))
				req.GetBody = nil // Go's client must not hide a failure by repeating the request
				resp, err := c.Do(req)
				if err != nil {
					t.Errorf("a request failed: %v", err)
				} else if resp.Body.Close(); resp.StatusCode/100 != 2 {
					t.Errorf("got status %d", resp.StatusCode)
				}
				sent.Add(1)
				select {
				case did <- struct{}{}:
				default:
				}
			}
		})
	}
	for i := range 100 {
		r.update(func(a *receivehttp.Arguments) {
			switch i % 3 {
			case 0:
				a.Server.HTTP.IdleTimeout = time.Duration(i+1) * time.Minute
			case 1:
				a.Server.HTTP.ConnLimit = 1000 + i
			case 2:
				a.AppendMetadata = !a.AppendMetadata
			}
		})
		for n := sent.Load(); sent.Load() < n+4; {
			<-did
		}
	}
	cancel()
	wg.Wait()
	got := rows(sink.Batches())
	seen := map[string]bool{}
	for _, row := range got {
		seen[row] = true
	}
	if n := int(sent.Load()); len(got) != n || len(seen) != n {
		t.Errorf("%d samples were sent; %d arrived, %d different ones", n, len(got), len(seen))
	}
}
