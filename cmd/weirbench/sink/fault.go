package sink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Fault describes how the sink handles the next requests incorrectly.
type Fault struct {
	Status     int      `json:"status"`      // status of the response; 0 means the normal one
	RetryAfter int      `json:"retry_after"` // Retry-After header of the response in seconds; 0 means none
	Delay      Duration `json:"delay"`       // delay before the response
	Reset      bool     `json:"reset"`       // reset the connection instead of responding
	HalfClose  bool     `json:"half_close"`  // close the server's half of the connection instead of responding
	Keep       bool     `json:"keep"`        // accept the samples before this response
	Requests   int      `json:"requests"`    // number of requests; 0 is no limit
	For        Duration `json:"for"`         // duration; 0 means until DELETE /faults
}

// Duration is a time.Duration that uses Go's syntax in JSON.
type Duration time.Duration

// UnmarshalText parses a duration such as "1.5s".
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// MarshalText formats a duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Validate returns an error if f is invalid.
func (f Fault) Validate() error {
	switch {
	case f.Status != 0 && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("cannot answer with status %d: it is from 200 to 599", f.Status)
	case f.RetryAfter < 0 || f.Delay < 0 || f.Requests < 0 || f.For < 0:
		return errors.New("cannot do anything a negative number of times or for a negative time")
	case f.silent() && f.Status != 0:
		return errors.New("cannot answer with a status on a connection that is closed: give one of both")
	case f.Reset && f.HalfClose:
		return errors.New("cannot close half of a connection that is reset: give one of both")
	case f.Status == 0 && f.Delay == 0 && !f.silent():
		return errors.New("cannot tell what to do: give status, delay, reset or half_close")
	}
	return nil
}

// silent reports whether there is no response.
func (f Fault) silent() bool { return f.Reset || f.HalfClose }

// faults contains the current fault.
type faults struct {
	mu    sync.Mutex
	f     *Fault
	left  int
	until time.Time
	over  chan struct{} // closed when the fault is replaced or removed
}

// set replaces the current fault by f, which may be nil.
func (fs *faults) set(f *Fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.over != nil {
		close(fs.over)
	}
	fs.f, fs.over = f, make(chan struct{})
	if f != nil {
		fs.left, fs.until = f.Requests, time.Now().Add(time.Duration(f.For))
	}
}

// next returns the fault for a request, or nil, and a channel that ends its
// delay.
func (fs *faults) next() (*Fault, <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.f
	if f == nil || f.For > 0 && time.Now().After(fs.until) {
		return nil, nil
	}
	if f.Requests > 0 {
		if fs.left == 0 {
			return nil, nil
		}
		fs.left--
	}
	return f, fs.over
}

// wait waits for the delay of the fault.
func (f *Fault) wait(r *http.Request, over <-chan struct{}) {
	if f.Delay == 0 {
		return
	}
	t := time.NewTimer(time.Duration(f.Delay))
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	case <-r.Context().Done():
	}
}

// answer sends the response of the fault. It returns false if the normal response
// is to be sent.
func (f *Fault) answer(w http.ResponseWriter) bool {
	if f.Reset {
		panic(http.ErrAbortHandler)
	}
	if f.HalfClose {
		halfClose(w)
		return true
	}
	if f.Status == 0 {
		return false
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	w.WriteHeader(f.Status)
	fmt.Fprintln(w, "the bench wants it so")
	return true
}

// halfClose closes the sending half of a connection, and reads until the client
// closes its half, or for some seconds.
func halfClose(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // only for HTTP/2, which the server does not support
	}
	defer c.Close()
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite() // the client may have disconnected
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.Copy(io.Discard, c)
}
