package control_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves h for a storage directory until the returned function is called.
func serve(t *testing.T, dir string, h http.HandlerFunc) (stop func()) {
	t.Helper()
	s, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, h) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func get(t *testing.T, dir, path string) (string, error) {
	t.Helper()
	resp, err := control.Client(dir).Get(control.URL(path))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func hello(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello "+r.URL.Path) }

func TestServe(t *testing.T) {
	f := func(name, dir string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			stop := serve(t, dir, hello)
			got, err := get(t, dir, "/a/b")
			if err != nil || got != "hello /a/b" {
				t.Errorf("got %q, %v", got, err)
			}
			if fi, err := os.Lstat(control.Path(dir)); err != nil {
				t.Error(err)
			} else if runtime.GOOS != "windows" && fi.Mode() != os.ModeSocket|0o600 {
				t.Errorf("got mode %s, want a socket with 0600", fi.Mode())
			}
			stop()
			if _, err := os.Lstat(control.Path(dir)); err == nil {
				t.Error("the socket is still there")
			}
			_, err = get(t, dir, "/")
			if _, ok := errors.AsType[*control.NotRunningError](err); !ok {
				t.Errorf("got %v after the end, want NotRunningError", err)
			}
		})
	}
	tmp := t.TempDir()
	f("short", filepath.Join(tmp, "s"))
	f("relative", relative(t, filepath.Join(tmp, "r")))
	// Longer than a socket's address can be.
	if runtime.GOOS == "linux" {
		f("long", filepath.Join(tmp, strings.Repeat("x", 120), strings.Repeat("y", 120)))
	}
}

func relative(t *testing.T, path string) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

func TestLongPathBelowWorkingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	stop := serve(t, "data", hello)
	if got, err := get(t, "data", "/"); err != nil || got != "hello /" {
		t.Errorf("got %q, %v", got, err)
	}
	stop()
}

func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	// A process that died leaves its socket.
	ln, err := net.Listen("unix", control.Path(dir))
	if err != nil {
		t.Skip(err) // the temporary directory's path is too long for a plain socket
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	_, err = get(t, dir, "/")
	if _, ok := errors.AsType[*control.NotRunningError](err); !ok || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v for a dead socket, want NotRunningError", err)
	}
	stop := serve(t, dir, hello)
	if got, err := get(t, dir, "/"); err != nil || got != "hello /" {
		t.Errorf("got %q, %v", got, err)
	}
	stop()

	// A file that is not a socket is not removed.
	if err := os.WriteFile(control.Path(dir), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Listen(dir); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("got %v, want a refusal", err)
	}
	if _, err := control.Listen(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a directory that does not exist was served")
	}
}

func TestStopEndsStreams(t *testing.T) {
	dir := t.TempDir()
	ended := make(chan struct{})
	stop := serve(t, dir, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // such as a tap
		close(ended)
	})
	resp, err := control.Client(dir).Get(control.URL("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != "first" {
		t.Fatalf("got %q, %v", b, err)
	}
	stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the stream goes on")
	}
}

func TestCloseWithoutServe(t *testing.T) {
	dir := t.TempDir()
	s, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(control.Path(dir)); err == nil {
		t.Error("the socket is still there")
	}
}
