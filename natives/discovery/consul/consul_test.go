package consul_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	upstream "github.com/prometheus/prometheus/discovery/consul"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/consul"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
)

// agent plays a Consul agent: blocking queries of the catalog and the health
// of services.
type agent struct {
	*httptest.Server
	mu       sync.Mutex
	index    int
	services map[string][]object // instances by name
	changed  chan struct{}
	down     bool
	asked    []string
	auth     string
}

type object = map[string]any

func newAgent(t *testing.T) *agent {
	a := &agent{index: 1, services: map[string][]object{}, changed: make(chan struct{})}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections() // queries block
		a.Close()
	})
	return a
}

// set replaces the instances of a service, none removes it.
func (a *agent) set(name string, instances ...object) {
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

// instance is an answer of a real agent, with another address.
func instance(address string, port int, tags ...string) object {
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

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func (a *agent) host(t *testing.T) string {
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestSameAsPrometheus(t *testing.T) {
	a := newAgent(t)
	a.set("web", instance("10.0.0.1", 80), instance("", 81, "blue", "tag1"))
	a.set("db", instance("10.0.0.2", 5432, "blue"))
	f := func(more, text string, targets int) {
		t.Helper()
		discoverytest.Same(t, consul.Registration(), fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\n", a.host(t))+more, new(upstream.SDConfig),
			fmt.Sprintf("server: %q\nrefresh_interval: 20ms\n", a.host(t))+text, targets).Stop()
	}
	f("", "", 3)
	f("services = [\"web\"]\ntag_separator = \";\"", "services: [web]\ntag_separator: ';'", 2)
	f("datacenter = \"dc9\"", "datacenter: dc9", 3)
	f("tags = [\"tag1\"]", "tags: [tag1]", 2)
}

func TestRequests(t *testing.T) {
	a := newAgent(t)
	a.set("web", instance("10.0.0.1", 80))
	f := func(args, auth string, want ...string) {
		t.Helper()
		n := discoverytest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\n", a.host(t))+args)
		n.Await(t, "a target", func(ts []map[string]string) bool { return len(ts) == 1 })
		n.Stop()
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, w := range want {
			if !slices.Contains(a.asked, w) {
				t.Errorf("%s: asked %q, want %q among it", args, a.asked, w)
			}
		}
		if a.auth != auth {
			t.Errorf("%s: authenticated with %q, want %q", args, a.auth, auth)
		}
		a.asked = nil
	}
	f("token = \"t\"", "t", "/v1/agent/self?", "/v1/catalog/services?stale=", "/v1/health/service/web?stale=")
	f("username = \"u\"\npassword = \"p\"\nallow_stale = false", "Basic dTpw", "/v1/health/service/web?")
	f("bearer_token = \"b\"\ndatacenter = \"d\"\nnamespace = \"n\"\npartition = \"p\"\nservices = [\"web\"]", "Bearer b", "/v1/health/service/web?dc=d&ns=n&partition=p&stale=")
	f("filter = \"a == b\"\nhealth_filter = \"c == d\"\ntags = [\"tag1\"]\nnode_meta = { r = \"1\" }", "",
		"/v1/catalog/services?filter=a+%3D%3D+b&node-meta=r%3A1&stale=", "/v1/health/service/web?filter=c+%3D%3D+d&node-meta=r%3A1&stale=&tag=tag1")
}

func TestChanges(t *testing.T) {
	a := newAgent(t)
	body := func(more string) string {
		return fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\n", a.host(t)) + more
	}
	a.set("web", instance("10.0.0.1", 80))
	a.set("db", instance("10.0.0.2", 5432))
	n := discoverytest.Run(t, consul.Registration(), body(""))
	await := func(want ...string) {
		t.Helper()
		n.Await(t, fmt.Sprint(want), func(ts []map[string]string) bool {
			var got []string
			for _, l := range ts {
				got = append(got, l["__meta_consul_service"]+" "+l["__address__"])
			}
			return slices.Equal(got, want)
		})
	}
	await("db 10.0.0.2:5432", "web 10.0.0.1:80")
	a.set("web", instance("10.0.0.1", 80), instance("10.0.0.1", 90))
	await("db 10.0.0.2:5432", "web 10.0.0.1:80", "web 10.0.0.1:90")
	a.set("db")
	await("web 10.0.0.1:80", "web 10.0.0.1:90")
	a.set("cache", instance("10.0.0.3", 6379))
	await("cache 10.0.0.3:6379", "web 10.0.0.1:80", "web 10.0.0.1:90")
	n.Update(t, body(`services = ["cache"]`))
	await("cache 10.0.0.3:6379")
	n.AwaitHealth(t, component.Healthy, "found 1 target")
}

// TestAgentFails takes as long as Prometheus's discoverer sleeps after an
// error, which leaves the component unhealthy and without a word for 15 s.
func TestAgentFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	a := newAgent(t)
	a.set("web", instance("10.0.0.1", 80))
	n := discoverytest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\nservices = [\"web\"]", a.host(t)))
	one := func(ts []map[string]string) bool { return len(ts) == 1 }
	n.Await(t, "a target", one)
	a.mu.Lock()
	a.down = true
	a.mu.Unlock()
	a.CloseClientConnections()
	n.AwaitHealth(t, component.Unhealthy, "service web")
	if !one(n.Targets()) {
		t.Errorf("%d targets are left, want 1", len(n.Targets()))
	}
	a.mu.Lock()
	a.down = false
	a.mu.Unlock()
	a.set("web", instance("10.0.0.1", 80), instance("10.0.0.1", 90))
	before := time.Now()
	n.Await(t, "another target", func(ts []map[string]string) bool { return len(ts) == 2 })
	t.Logf("found %s after it could be", time.Since(before))
	n.AwaitHealth(t, component.Healthy, "found 2 targets")
}

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, consul.Registration(), body, want...)
	}
	f(``)
	f("token = \"t\"\nscheme = \"https\"")
	f(`server = " "`, "server must not be empty")
	f(`scheme = "ftp"`, `scheme must be "http" or "https", not "ftp"`)
	f(`refresh_interval = "0s"`, "refresh_interval is 0s")
	f("username = \"u\"\nbasic_auth {\n\tusername = \"u\"\n}", "at most one of basic_auth and username with password")
	f("password = \"p\"\nbearer_token = \"t\"", "at most one of username with password and another way")
	f("token = \"t\"\nauthorization {\n\tcredentials = \"c\"\n}", "at most one of token, authorization")
	f(`path_prefix = "/p"`, "unknown attribute path_prefix")
}
