package http_test

import (
	"context"
	"crypto/tls"
	nethttp "net/http"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service/http"
)

// TestHundredRenewals: no connection is refused and no request fails while the
// certificate changes a hundred times.
func TestHundredRenewals(t *testing.T) {
	ca := newAuthority(t)
	var as [2]*http.Arguments
	for i, name := range []string{"one", "two"} {
		cert, key := ca.issue(name)
		as[i] = &http.Arguments{TLS: &http.TLSArguments{Cert: cert, Key: component.Secret(key)}}
	}
	s := run(t, &host{}, http.Options{})
	update(t, s, as[0])
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	did := make(chan struct{})
	for i := range 2 {
		c := &nethttp.Client{Transport: &nethttp.Transport{DisableKeepAlives: i == 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		wg.Go(func() {
			defer c.CloseIdleConnections()
			for ctx.Err() == nil {
				res, err := c.Get("https://" + s.Address() + "/-/healthy")
				if err != nil {
					t.Errorf("a request failed: %v", err)
				} else if res.Body.Close(); res.StatusCode != nethttp.StatusOK {
					t.Errorf("got status %d", res.StatusCode)
				}
				select {
				case did <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for i := range 100 {
		<-did
		update(t, s, as[i%2])
	}
	cancel()
	wg.Wait()
}
