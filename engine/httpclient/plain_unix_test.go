//go:build unix

package httpclient_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/engine/httpclient"
)

// TestPlainIdleAnswer: proxies say 408 on a connection that is idle for too long
// before they close it. That is no answer to the next request.
func TestPlainIdleAnswer(t *testing.T) {
	f := func(unasked string) {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nyo"
		idle, served := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(served)
			for i := range 2 {
				c, err := l.Accept()
				if err != nil {
					return
				}
				http.ReadRequest(bufio.NewReader(c))
				io.WriteString(c, answer)
				if i == 0 {
					<-idle
					io.WriteString(c, unasked)
				}
				defer c.Close()
				if unasked == "" {
					c.Close()
				}
			}
		}()
		var a httpclient.Arguments
		a.SetToDefault()
		c, err := httpclient.NewClient(&a)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		var first *net.TCPConn
		a.Plain(c, func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, address)
			if first == nil && err == nil {
				first = nc.(*net.TCPConn)
			}
			return nc, err
		})
		for i := range 2 {
			resp, err := c.Post("http://"+l.Addr().String(), "", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(b) != "yo" || err != nil {
				t.Errorf("after %q: got %s, %q, %v", unasked, resp.Status, b, err)
			}
			resp.Body.Close()
			if i == 0 {
				close(idle)
				arrived(t, first)
			}
		}
		l.Close()
		<-served
	}
	f("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	f("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")
	f("")
}

// arrived returns when there is something to read on c, or its end.
func arrived(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	})
	if err != nil {
		t.Fatal(err)
	}
}
