package http_test

import (
	"context"
	"crypto/tls"
	nethttp "net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/engine/service"
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

// TestFilesThatHang: a certificate on a file system that does not respond delays neither
// requests nor the engine, which asks for the files.
func TestFilesThatHang(t *testing.T) {
	cert, key := newAuthority(t).issue("one")
	dir := t.TempDir()
	a := &http.Arguments{TLS: &http.TLSArguments{CertFile: file(t, filepath.Join(dir, "cert"), cert), KeyFile: file(t, filepath.Join(dir, "key"), key)}}
	s := run(t, &host{}, http.Options{})
	s.Data().(service.HTTPData).Handle("/own/", nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {}))
	filestest.Patience(t, time.Hour)
	asked, release := filestest.Hang(t, dir)
	updated := make(chan error, 1)
	go func() { updated <- s.Update(a) }()
	<-asked
	filestest.Within(t, "a request or a question", func() {
		if status, _ := get(t, client(t, nil), "GET", "http://"+s.Address()+"/own/x"); status != nethttp.StatusOK {
			t.Errorf("got status %d", status)
		}
		if n := len(s.Sourced()); n != 2 {
			t.Errorf("it reads %d files, want 2", n)
		}
	})
	release()
	if err := <-updated; err != nil {
		t.Error(err)
	}
}
