package http_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

func TestConnectionLimit(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := run(t, &host{}, http.Options{Registerer: reg})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	answered := func(c net.Conn) error {
		fmt.Fprint(c, "GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
		res, err := nethttp.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		return err
	}
	first := dial()
	if err := answered(first); err != nil {
		t.Fatal(err)
	}
	for range http.MaxConnections - 2 {
		dial()
	}
	last := dial()
	if err := answered(last); err != nil {
		t.Fatalf("a connection within the limit was not served: %v", err)
	}
	if err := answered(dial()); err == nil {
		t.Error("a connection beyond the limit was served")
	}
	want := `
		# HELP weir_http_limited_total How often a limit of weir's own port took effect: page_links and page_sessions ended the oldest one, failed_logins refused an address, failed_login_addresses forgot the failed logins of one, connections closed a new one.
		# TYPE weir_http_limited_total counter
		weir_http_limited_total{limit="connections"} 1
		weir_http_limited_total{limit="failed_login_addresses"} 0
		weir_http_limited_total{limit="failed_logins"} 0
		weir_http_limited_total{limit="page_links"} 0
		weir_http_limited_total{limit="page_sessions"} 0
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_http_limited_total"); err != nil {
		t.Error(err)
	}

	// Those that are open are served on, and the socket and memory have no part in it.
	if err := answered(first); err != nil {
		t.Error(err)
	}
	data := s.Data().(service.HTTPData)
	if status, _ := get(t, client(t, data.DialContext), "GET", "http://"+data.MemoryAddress+"/-/ready"); status == 0 {
		t.Error("the service does not answer in memory")
	}
}

func TestClientThatDoesNotRead(t *testing.T) { synctest.Test(t, testClientThatDoesNotRead) }

func testClientThatDoesNotRead(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := http.NewClient(near)
	defer c.Close()
	write := func(want time.Duration) {
		t.Helper()
		start := time.Now()
		_, err := c.Write([]byte("x"))
		if got := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || got != want {
			t.Errorf("got %v after %v, want a timeout after %v", err, got, want)
		}
	}
	write(http.StuckTime)

	// A stream may take longer in all, as long as it is read.
	go func() {
		for range 5 {
			time.Sleep(http.StuckTime - time.Second)
			_, _ = far.Read(make([]byte, 1))
		}
	}()
	for range 5 {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(err)
		}
	}
	write(http.StuckTime)

	// The deadline of a handler is kept.
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Error(err)
	}
	write(time.Second)
	if err := c.SetWriteDeadline(time.Time{}); err != nil {
		t.Error(err)
	}
	write(http.StuckTime)
}
