package discoverytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Agent simulates a Consul agent: blocking queries of the catalog and the health
// of services.
type Agent struct {
	*httptest.Server
	mu       sync.Mutex
	index    int
	services map[string][]object // instances by name
	changed  chan struct{}
	down     bool
	asked    []string
	auth     string
}

// NewAgent returns an agent without services. It is closed at the end of the
// test.
func NewAgent(t testing.TB) *Agent {
	a := &Agent{index: 1, services: map[string][]object{}, changed: make(chan struct{})}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections() // queries may be blocked
		a.Close()
	})
	return a
}

// Set replaces the instances of a service. Without instances, it removes the
// service.
func (a *Agent) Set(name string, instances ...object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index++
	if len(instances) == 0 {
		delete(a.services, name)
	} else {
		a.services[name] = instances
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// Instance returns an instance as a real agent does, with another address.
func Instance(address string, port int, tags ...string) object {
	var o object
	err := json.Unmarshal(fmt.Appendf(nil, `{
		"Node": {"ID": "b78c2e48-5ef3-1814-31b8-0d880f50471e", "Node": "node1", "Address": "1.1.1.1", "Datacenter": "test-dc",
			"TaggedAddresses": {"lan": "192.168.10.10", "wan": "10.0.10.10"}, "Meta": {"rack_name": "2304"}, "CreateIndex": 1, "ModifyIndex": 1},
		"Service": {"ID": "id-%[2]d", "Service": "test", "Tags": ["tag1"], "Address": %[1]q, "Meta": {"version": "1.0.0"}, "Port": %[2]d,
			"Weights": {"Passing": 1, "Warning": 1}, "EnableTagOverride": false, "CreateIndex": 1, "ModifyIndex": 1},
		"Checks": [{"Node": "node1", "CheckID": "serfHealth", "Name": "Serf Health Status", "Status": "passing"}]}`, address, port), &o)
	if err != nil {
		panic(err)
	}
	if tags != nil {
		o["Service"].(object)["Tags"] = tags
	}
	return o
}

func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.Get("wait") != "" {
		seen := 0
		fmt.Sscan(q.Get("index"), &seen)
		for seen == a.index && !a.down {
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
	}
	q.Del("wait")
	q.Del("index")
	a.asked = append(a.asked, r.URL.Path+"?"+q.Encode())
	a.auth = r.Header.Get("Authorization") + r.Header.Get("X-Consul-Token")
	if a.down {
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Consul-Index", fmt.Sprint(a.index))
	var answer any
	switch name, isHealth := strings.CutPrefix(r.URL.Path, "/v1/health/service/"); {
	case r.URL.Path == "/v1/agent/self":
		answer = object{"Config": object{"Datacenter": "test-dc"}}
	case r.URL.Path == "/v1/catalog/services":
		tags := map[string][]string{}
		for n, is := range a.services {
			for _, i := range is {
				var ts []string
				b, _ := json.Marshal(i["Service"].(object)["Tags"])
				_ = json.Unmarshal(b, &ts)
				tags[n] = append(tags[n], ts...)
			}
		}
		answer = tags
	case isHealth:
		if answer = a.services[name]; a.services[name] == nil {
			answer = []object{}
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// Host returns the agent's address.
func (a *Agent) Host() string { return strings.TrimPrefix(a.URL, "http://") }

// SetDown makes the agent refuse all requests, and ends blocked queries.
func (a *Agent) SetDown(down bool) {
	a.mu.Lock()
	a.down = down
	a.mu.Unlock()
	if down {
		a.CloseClientConnections()
	}
}

// Requests returns the requests since the last call, without the parameters for
// blocking, and the authentication of the last request.
func (a *Agent) Requests() (asked []string, auth string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked, a.asked = a.asked, nil
	return asked, a.auth
}
