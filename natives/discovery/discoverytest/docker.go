package discoverytest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Docker simulates a Docker daemon with containers and networks, given in the
// JSON of its API. It is an http.Handler.
type Docker struct {
	mu                   sync.Mutex
	containers, networks string
	down                 bool
	filters              string
}

// Set replaces the containers and networks.
func (d *Docker) Set(containers, networks string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.containers, d.networks = containers, networks
}

// SetDown makes the daemon fail all requests.
func (d *Docker) SetDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

// Filters returns the filters of the last container list, in JSON.
func (d *Docker) Filters() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.filters
}

// ServeHTTP answers pings and lists.
func (d *Docker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Api-Version", "1.44")
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case d.down:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"message":"out of order"}`)
	case strings.HasSuffix(path, "/_ping"):
		fmt.Fprint(w, "OK")
	case strings.HasSuffix(path, "/containers/json"):
		d.filters = r.URL.Query().Get("filters")
		fmt.Fprint(w, d.containers)
	case strings.HasSuffix(path, "/networks"):
		fmt.Fprint(w, d.networks)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Socket serves on a Unix socket until the test ends, and returns its address.
func (d *Docker) Socket(t testing.TB) string {
	if runtime.GOOS == "windows" {
		t.Skip("Docker listens on a named pipe there")
	}
	dir, err := os.MkdirTemp("", "weir") // not t.TempDir: the path of a socket is limited to about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "d.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(d)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return "unix://" + l.Addr().String()
}
