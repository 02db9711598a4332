package server_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/server"
)

// reading answers a body with its length, or with the error of reading it.
func reading(entered chan<- bool, errs chan<- error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		b, err := io.ReadAll(r.Body)
		errs <- err
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, len(b), " bytes, ", err)
	})
}

// A request whose body does not arrive is cut when the server stops, a while before
// the graceful shutdown times out.
func TestHalfRequestAtShutdown(t *testing.T) {
	entered, errs := make(chan bool, 10), make(chan error, 10)
	f := func(what string, send func(v *served), edit func(*server.Arguments)) {
		t.Helper()
		v := serve(t, reading(entered, errs), func(a *server.Arguments) {
			a.GracefulShutdownTimeout, a.HTTP.ReadTimeout = time.Hour, time.Hour
			if edit != nil {
				edit(a)
			}
		})
		send(v)
		<-entered
		stopped := make(chan bool)
		go func() { v.stop(); close(stopped) }()
		if err := v.Clock.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		v.Clock.Advance(5 * time.Second)
		select {
		case <-stopped:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the server does not stop", what)
		}
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "weir is stopping") || !errors.Is(err, flow.ErrStopped) {
			t.Errorf("%s: reading gave %v", what, err)
		}
	}
	answers := make(chan string, 1)
	f("HTTP/1.1", func(v *served) {
		c, err := net.Dial("tcp", v.s.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
		go func() { b, _ := io.ReadAll(c); answers <- string(b) }()
	}, nil)
	if got := <-answers; !strings.Contains(got, "503 Service Unavailable") || !strings.Contains(got, "4 bytes") {
		t.Errorf("the client was answered %q", got)
	}
	cert, key := pair(t, "server")
	f("HTTP/2", func(v *served) {
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		t.Cleanup(tr.CloseIdleConnections)
		body, w := io.Pipe()
		t.Cleanup(func() { w.Close() })
		req, err := http.NewRequest(http.MethodPost, "https://"+v.s.Address(), body)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			resp, err := tr.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
		}()
		fmt.Fprint(w, "half")
	}, func(a *server.Arguments) {
		a.HTTP.TLS, a.HTTP.HTTP2.Enabled = &server.TLS{Cert: cert, Key: component.Secret(key)}, true
	})
}

// A request whose body has arrived is answered, however long that takes.
func TestWholeRequestAtShutdown(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	v := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		entered <- true
		<-release
		fmt.Fprint(w, string(b), err, r.Context().Err())
	}), func(a *server.Arguments) { a.GracefulShutdownTimeout = time.Hour })
	answers := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+v.s.Address(), "text/plain", strings.NewReader("whole "))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answers <- string(b)
	}()
	<-entered
	stopped := make(chan bool)
	go func() { v.stop(); close(stopped) }()
	if err := v.Clock.WaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	v.Clock.Advance(time.Minute)
	release <- true
	if got := <-answers; got != "whole <nil> <nil>" {
		t.Errorf("got %q", got)
	}
	<-stopped
}

// A request that is answered without its body being read is cut as well: net/http
// waits for the rest when the handler has returned.
func TestUnreadBodyAtShutdown(t *testing.T) {
	for _, header := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked", "Content-Length: 1000\r\nExpect: 100-continue"} {
		t.Run(header, func(t *testing.T) {
			returned := make(chan bool, 1)
			v := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "there is nothing", http.StatusNotFound)
				returned <- true
			}), func(a *server.Arguments) { a.GracefulShutdownTimeout, a.HTTP.ReadTimeout = time.Hour, time.Hour })
			c, err := net.Dial("tcp", v.s.Address())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\n", header, "\r\n\r\n")
			<-returned
			stopped := make(chan bool)
			go func() { v.stop(); close(stopped) }()
			if err := v.Clock.WaitTimers(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			v.Clock.Advance(5 * time.Second)
			select {
			case <-stopped:
			case <-time.After(time.Minute):
				t.Fatal("the server does not stop")
			}
			b, err := io.ReadAll(c)
			if got := string(b); err != nil || !strings.HasPrefix(got, "HTTP/1.1 404 Not Found") || !strings.Contains(got, "Connection: close") {
				t.Errorf("the client was answered %q, %v", got, err)
			}
		})
	}
}
