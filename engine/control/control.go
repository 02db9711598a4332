// Package control connects to a running weir: an HTTP handler on a socket in
// its storage directory, which only its user can open, and a client for it. It
// does not contain the handler, and does not use TCP.
package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	socketName = "weir.sock"
	// drain is the time limit for requests when weir stops.
	drain = time.Second
)

// Path returns the path of the socket in a storage directory.
func Path(storage string) string { return filepath.Join(storage, socketName) }

// Server serves the socket of one storage directory.
type Server struct {
	path string
	ln   net.Listener
	free func() // releases resources of the address
}

// Listen creates the socket, with mode 0600. The caller has locked the
// directory (package storage), so an existing socket belongs to a dead process
// and is replaced. Call Serve or Close.
func Listen(storage string) (*Server, error) {
	path, err := filepath.Abs(Path(storage))
	if err != nil {
		return nil, fmt.Errorf("cannot make the control socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("cannot replace the control socket: %w", err)
	}
	addr, free, err := address(path)
	if err != nil {
		return nil, fmt.Errorf("cannot make the control socket: %w", err)
	}
	lc := net.ListenConfig{Control: beforeBind}
	restore := narrowUmask()
	ln, err := lc.Listen(context.Background(), "unix", addr) // does not block
	restore()
	if err != nil {
		free()
		return nil, fmt.Errorf("cannot make the control socket %s: %w", path, err)
	}
	// Close removes it by its real path, because the address may be a detour.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	s := &Server{path: path, ln: ln, free: free}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot protect the control socket: %w", err), s.Close())
	}
	return s, nil
}

func removeStale(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.Mode().IsDir() || fi.Mode().IsRegular() && fi.Size() > 0:
		return fmt.Errorf("%s is not a socket, and not ours to remove", path)
	}
	return os.Remove(path)
}

// Serve serves h until ctx ends, and closes s. The requests' contexts end with
// ctx; requests that ignore that are cut off after a second.
func (s *Server) Serve(ctx context.Context, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(s.ln) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("cannot serve the control socket: %w", err)
	case <-ctx.Done():
		// This is a limited flush on shutdown: ctx has already ended.
		bounded, cancel := context.WithTimeout(context.Background(), drain)
		if srv.Shutdown(bounded) != nil {
			_ = srv.Close() // the requests that are left
		}
		cancel()
		<-failed
	}
	return errors.Join(err, s.Close())
}

// Close removes the socket. Call it after Listen if Serve is not called.
func (s *Server) Close() error {
	err := s.ln.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	s.free()
	if e := os.Remove(s.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the control socket: %w", err)
	}
	return nil
}

// NotRunningError is the client's error if no weir serves a storage directory.
type NotRunningError struct {
	Storage string
	Err     error
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("cannot reach weir: none runs with the storage directory %s; name the one that does with --storage.path", e.Storage)
}

// Unwrap returns the system's error.
func (e *NotRunningError) Unwrap() error { return e.Err }

// Client returns a client for the weir that runs with a storage directory,
// whatever host a request's URL contains; URL creates one. It has no timeout.
// If no weir runs, the error is a *NotRunningError.
func Client(storage string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, err := filepath.Abs(Path(storage))
		if err != nil {
			return nil, err
		}
		addr, free, err := address(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &NotRunningError{Storage: storage, Err: err}
		}
		if err != nil {
			return nil, err
		}
		defer free()
		conn, err := new(net.Dialer).DialContext(ctx, "unix", addr)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, &NotRunningError{Storage: storage, Err: err}
		}
		return conn, err
	}
	// A command makes only a few requests, so idle connections are not useful.
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// URL returns the URL of a path for Client.
func URL(path string) string { return "http://weir" + path }
