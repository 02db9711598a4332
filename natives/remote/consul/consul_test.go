package consul_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/remote/consul"
	"github.com/weir-run/weir/natives/remote/remotetest"
)

// agent stands in for a Consul agent: it has the part of the API that reads keys,
// https://developer.hashicorp.com/consul/api-docs/kv, with blocking queries.
type agent struct {
	mu      sync.Mutex
	keys    map[string]string
	index   uint64
	changed chan struct{} // closed and replaced at every change
	down    bool
	asked   []string
}

func newAgent(t *testing.T, keys map[string]string) (*agent, string) {
	t.Helper()
	a := &agent{keys: keys, index: 7, changed: make(chan struct{})}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, strings.TrimPrefix(s.URL, "http://")
}

func (a *agent) set(edit func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	edit()
	a.index++
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	prefix, ok := strings.CutPrefix(r.URL.Path, "/v1/kv/")
	if !ok || !r.URL.Query().Has("recurse") {
		http.Error(w, "not a read of keys", http.StatusNotFound)
		return
	}
	wait, _ := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.Header.Get("X-Consul-Token"))
	for wait > 0 && a.index == wait {
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		a.mu.Lock()
		if r.Context().Err() != nil {
			return
		}
	}
	if a.down {
		http.Error(w, "no cluster leader", http.StatusInternalServerError)
		return
	}
	if r.Header.Get("X-Consul-Token") == "wrong" {
		http.Error(w, "ACL not found", http.StatusForbidden)
		return
	}
	w.Header().Set("X-Consul-Index", fmt.Sprint(a.index))
	type pair struct {
		Key   string
		Value []byte
	}
	var out []pair
	for k, v := range a.keys {
		if strings.HasPrefix(k, prefix) {
			out = append(out, pair{k, []byte(v)})
		}
	}
	if len(out) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	json.NewEncoder(w).Encode(out)
}

func TestValues(t *testing.T) {
	_, addr := newAgent(t, map[string]string{"app/a": "1", "app/b/c": "2", "app/b/": "", "apple": "3"})
	f := func(more string, want map[string]string) {
		t.Helper()
		n := remotetest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\n", addr)+more)
		n.Await(t, want)
		n.Stop()
	}
	f(`prefix = "/app"`, map[string]string{"/a": "1", "/b/c": "2"})
	f(`prefix = "app"`, map[string]string{"/a": "1", "/b/c": "2"})
	f(``, map[string]string{"/app/a": "1", "/app/b/c": "2", "/apple": "3"})
	f(`keys = ["/app/a", "/apple"]`, map[string]string{"/app/a": "1", "/apple": "3"})
	f(`prefix = "/none"`, map[string]string{})
}

func TestChanges(t *testing.T) {
	a, addr := newAgent(t, map[string]string{"app/a": "1"})
	n := remotetest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\nprefix = \"app\"\ntoken = \"t\"\npoll_frequency = \"1h\"", addr))
	n.Await(t, map[string]string{"/a": "1"})
	a.set(func() { a.keys["app/a"] = "2" })
	n.Await(t, map[string]string{"/a": "2"})
	a.set(func() { a.down = true })
	n.AwaitHealth(t, component.Unhealthy, "no cluster leader")
	a.set(func() { a.down, a.index, a.keys = false, 1, map[string]string{"app/a": "3"} }) // restored from a snapshot
	n.Await(t, map[string]string{"/a": "3"})
	n.AwaitHealth(t, component.Healthy, "")
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, token := range a.asked {
		if token != "t" {
			t.Errorf("a request had the token %q", token)
		}
	}
}

func TestWrongToken(t *testing.T) {
	_, addr := newAgent(t, nil)
	n := remotetest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\ntoken = \"wrong\"", addr))
	n.AwaitHealth(t, component.Unhealthy, "ACL not found")
	if n.Exports() != nil {
		t.Errorf("got exports %v", n.Exports())
	}
}
