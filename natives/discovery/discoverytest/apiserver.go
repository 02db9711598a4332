package discoverytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// APIServer implements the part of the Kubernetes API, over HTTP and in JSON,
// that a client needs to list and watch objects: lists with a resource version,
// watches from a version, and the streamed lists of newer servers.
type APIServer struct {
	*httptest.Server
	streamed bool

	mu      sync.Mutex
	version int
	objects map[string]map[string]object // by resource, then namespace/name
	events  map[string][]event
	changed chan struct{} // closed and replaced with each change
	down    bool
	asked   []string
	auth    string
}

type object = map[string]any

type event struct {
	Type    string `json:"type"`
	Object  object `json:"object"`
	version int
}

var kinds = map[string][2]string{ // by resource: apiVersion and kind
	"nodes": {"v1", "Node"}, "pods": {"v1", "Pod"}, "services": {"v1", "Service"}, "endpoints": {"v1", "Endpoints"}, "namespaces": {"v1", "Namespace"},
	"endpointslices": {"discovery.k8s.io/v1", "EndpointSlice"}, "ingresses": {"networking.k8s.io/v1", "Ingress"},
}

// NewAPIServer returns a server without objects. It is closed at the end of the
// test. If streamed is true, it supports lists as the beginning of a watch.
func NewAPIServer(t testing.TB, streamed bool) *APIServer {
	s := &APIServer{streamed: streamed, version: 1, objects: map[string]map[string]object{}, events: map[string][]event{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections() // watches may be active
		s.Close()
	})
	return s
}

// Put creates or changes an object, given in JSON.
func (s *APIServer) Put(resource, text string) {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	meta := o["metadata"].(map[string]any)
	meta["resourceVersion"] = fmt.Sprint(s.version)
	o["apiVersion"], o["kind"] = kinds[resource][0], kinds[resource][1]
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]object{}
	}
	what := "ADDED"
	if s.objects[resource][key(o)] != nil {
		what = "MODIFIED"
	}
	s.objects[resource][key(o)] = o
	s.publish(resource, event{what, o, s.version})
}

// Remove removes the object namespace/name, if it exists.
func (s *APIServer) Remove(resource, namespacedName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[resource][namespacedName]
	if o == nil {
		return
	}
	s.version++
	delete(s.objects[resource], namespacedName)
	s.publish(resource, event{"DELETED", o, s.version})
}

func (s *APIServer) publish(resource string, e event) {
	s.events[resource] = append(s.events[resource], e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// SetDown makes the server refuse all requests, and ends all watches.
func (s *APIServer) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.CloseClientConnections()
	}
}

func key(o object) string {
	meta := o["metadata"].(map[string]any)
	ns, _ := meta["namespace"].(string)
	return ns + "/" + meta["name"].(string)
}

func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /api/v1/namespaces/NS/pods or /apis/discovery.k8s.io/v1/endpointslices
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource, namespace := parts[len(parts)-1], ""
	if i := slices.Index(parts, "namespaces"); i >= 0 && i+2 < len(parts) {
		namespace = parts[i+1]
	}
	q := r.URL.Query()
	s.mu.Lock()
	s.auth = r.Header.Get("Authorization")
	s.asked = append(s.asked, fmt.Sprintf("%s ns=%s label=%s field=%s", resource, namespace, q.Get("labelSelector"), q.Get("fieldSelector")))
	down := s.down
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case down:
		status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "etcd is gone")
	case kinds[resource][0] == "":
		status(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case q.Get("watch") != "" && q.Get("sendInitialEvents") == "true" && !s.streamed:
		status(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	case q.Get("watch") != "":
		s.watch(w, r, resource, namespace)
	default:
		s.list(w, resource, namespace)
	}
}

func status(w http.ResponseWriter, code int, reason, msg string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": msg, "code": code})
}

func (s *APIServer) list(w http.ResponseWriter, resource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []object{}
	for _, o := range s.objects[resource] {
		if namespace == "" || strings.HasPrefix(key(o), namespace+"/") {
			items = append(items, o)
		}
	}
	_ = json.NewEncoder(w).Encode(object{
		"kind": kinds[resource][1] + "List", "apiVersion": kinds[resource][0],
		"metadata": object{"resourceVersion": fmt.Sprint(s.version)}, "items": items,
	})
}

func (s *APIServer) watch(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	from := 0
	fmt.Sscan(r.URL.Query().Get("resourceVersion"), &from)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		s.mu.Lock()
		from = s.version
		for _, o := range s.objects[resource] {
			if namespace == "" || strings.HasPrefix(key(o), namespace+"/") {
				_ = json.NewEncoder(w).Encode(event{Type: "ADDED", Object: o})
			}
		}
		_ = json.NewEncoder(w).Encode(event{Type: "BOOKMARK", Object: object{
			"kind": kinds[resource][1], "apiVersion": kinds[resource][0],
			"metadata": object{"resourceVersion": fmt.Sprint(s.version), "annotations": object{"k8s.io/initial-events-end": "true"}},
		}})
		s.mu.Unlock()
	}
	for {
		w.(http.Flusher).Flush()
		s.mu.Lock()
		for _, e := range s.events[resource] {
			if e.version > from && (namespace == "" || strings.HasPrefix(key(e.Object), namespace+"/")) {
				_ = json.NewEncoder(w).Encode(e)
			}
		}
		from = s.version
		changed := s.changed
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// Requests returns all requests so far.
func (s *APIServer) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Authorization returns the Authorization header of the last request.
func (s *APIServer) Authorization() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth
}

// Populate fills the server with a small cluster: three pods in two namespaces.
func (s *APIServer) Populate() {
	s.Put("namespaces", `{"metadata": {"name": "shop", "labels": {"owner": "payments"}}}`)
	s.Put("nodes", `{"metadata": {"name": "node-1", "labels": {"zone": "a"}, "annotations": {"x/y": "z"}},
		"spec": {"providerID": "p1"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.1.0.1"}, {"type": "Hostname", "address": "node-1"}],
		"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}}`)
	s.Put("pods", Pod("web-1", "10.2.0.1", 8080, 9090))
	s.Put("pods", Pod("web-2", "10.2.0.2", 8080, 9090))
	s.Put("pods", strings.Replace(Pod("other", "10.3.0.1", 8080, 9090), `"shop"`, `"lab"`, 1))
	s.Put("services", `{"metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
		"spec": {"type": "ClusterIP", "clusterIP": "10.9.0.1", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "metrics", "port": 9090, "protocol": "TCP"}]}}`)
	s.Put("endpoints", `{"metadata": {"name": "web", "namespace": "shop"}, "subsets": [{
		"addresses": [{"ip": "10.2.0.1", "nodeName": "node-1", "targetRef": {"kind": "Pod", "name": "web-1", "namespace": "shop"}}],
		"notReadyAddresses": [{"ip": "10.2.0.2"}], "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}]}`)
	s.Put("endpointslices", `{"metadata": {"name": "web-abc", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4",
		"endpoints": [{"addresses": ["10.2.0.1"], "conditions": {"ready": true}, "nodeName": "node-1", "targetRef": {"kind": "Pod", "name": "web-1", "namespace": "shop"}}],
		"ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}`)
	s.Put("ingresses", `{"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ingressClassName": "nginx", "tls": [{"hosts": ["shop.example.org"]}],
		"rules": [{"host": "shop.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}, {"path": "/api", "pathType": "Prefix", "backend": {}}]}}]}}`)
}

// Pod returns a pod of namespace shop with a container port for each of ports.
func Pod(name, ip string, ports ...int) string {
	var list []string
	for _, p := range ports {
		list = append(list, fmt.Sprintf(`{"name": "p%d", "containerPort": %d, "protocol": "TCP"}`, p, p))
	}
	return fmt.Sprintf(`{"metadata": {"name": %q, "namespace": "shop", "uid": %q, "labels": {"app": "web"}, "annotations": {"prometheus.io/scrape": "true"},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true}]},
		"spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1", "ports": [%s]}]},
		"status": {"podIP": %q, "hostIP": "10.1.0.1", "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`,
		name, "uid-"+name, strings.Join(list, ", "), ip)
}
