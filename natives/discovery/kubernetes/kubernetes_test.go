package kubernetes_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	upstream "github.com/prometheus/prometheus/discovery/kubernetes"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
	"github.com/weir-run/weir/natives/discovery/kubernetes"
)

func TestSameAsPrometheus(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		s := discoverytest.NewAPIServer(t, streamed)
		s.Populate()
		f := func(role, more, text string, targets int) {
			t.Helper()
			discoverytest.Same(t, kubernetes.Registration(), fmt.Sprintf("role = %q\napi_server = %q\n", role, s.URL)+more,
				new(upstream.SDConfig), fmt.Sprintf("role: %s\napi_server: %s\n", role, s.URL)+text, targets).Stop()
		}
		f("node", "", "", 1)
		f("pod", "", "", 6)
		f("pod", "namespaces {\n\tnames = [\"lab\"]\n}", "namespaces: {names: [lab]}", 2)
		f("service", "", "", 2)
		f("ingress", "", "", 2)
		f("endpointslice", "", "", 2)
		f("endpoints", "", "", 3)
	}
}

// TestAttachedMetadata: nodes and namespaces are watched in addition to the pods,
// so their labels may arrive after the targets.
func TestAttachedMetadata(t *testing.T) {
	s := discoverytest.NewAPIServer(t, true)
	s.Populate()
	n := discoverytest.Run(t, kubernetes.Registration(), fmt.Sprintf("role = \"pod\"\napi_server = %q\nattach_metadata {\n\tnode = true\n\tnamespace = true\n}", s.URL))
	n.Await(t, "labels of node and namespace", func(ts []map[string]string) bool {
		return len(ts) == 6 && ts[4]["__meta_kubernetes_node_label_zone"] == "a" && ts[4]["__meta_kubernetes_namespace_label_owner"] == "payments"
	})
}

func TestRequests(t *testing.T) {
	s := discoverytest.NewAPIServer(t, false)
	s.Populate()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := discoverytest.Run(t, kubernetes.Registration(), fmt.Sprintf(`
role              = "endpointslice"
api_server        = %q
bearer_token_file = %q
namespaces {
	names = ["shop"]
}
selectors {
	role  = "endpointslice"
	label = "a=b"
}
selectors {
	role  = "pod"
	field = "spec.nodeName=node-1"
}
`, s.URL, token))
	n.Await(t, "two targets", func(ts []map[string]string) bool { return len(ts) == 2 })
	for _, want := range []string{
		"endpointslices ns=shop label=a=b field=", "pods ns=shop label= field=spec.nodeName=node-1", "services ns=shop label= field=",
	} {
		if got := s.Requests(); !slices.Contains(got, want) {
			t.Errorf("asked %q, want %q among it", got, want)
		}
	}
	if got := s.Authorization(); got != "Bearer secret" {
		t.Errorf("asked with Authorization %q", got)
	}
	if got := n.Component.Sourced(); !slices.Equal(got, []string{token}) {
		t.Errorf("got sourced %q, want the token", got)
	}
}

// TestChanges: pods are added, changed and removed, the API server fails, and the
// arguments change.
func TestChanges(t *testing.T) {
	s := discoverytest.NewAPIServer(t, true)
	s.Populate()
	body := func(namespace string) string {
		return fmt.Sprintf("role = \"pod\"\napi_server = %q\nnamespaces {\n\tnames = [%q]\n}", s.URL, namespace)
	}
	n := discoverytest.Run(t, kubernetes.Registration(), body("shop"))
	await := func(want ...string) {
		t.Helper()
		n.Await(t, fmt.Sprint(want), func(ts []map[string]string) bool {
			var got []string
			for _, l := range ts {
				if strings.HasSuffix(l["__address__"], ":9090") {
					got = append(got, l["__meta_kubernetes_pod_name"]+" "+l["__meta_kubernetes_pod_ip"])
				}
			}
			return slices.Equal(got, want)
		})
	}
	await("web-1 10.2.0.1", "web-2 10.2.0.2")
	s.Put("pods", discoverytest.Pod("web-3", "10.2.0.3", 8080, 9090))
	await("web-1 10.2.0.1", "web-2 10.2.0.2", "web-3 10.2.0.3")
	s.Put("pods", discoverytest.Pod("web-2", "10.2.0.22", 8080, 9090))
	await("web-1 10.2.0.1", "web-2 10.2.0.22", "web-3 10.2.0.3")
	s.Remove("pods", "shop/web-1")
	await("web-2 10.2.0.22", "web-3 10.2.0.3")

	s.SetDown(true)
	n.AwaitHealth(t, component.Unhealthy, "failed, the log says why")
	await("web-2 10.2.0.22", "web-3 10.2.0.3")
	s.Remove("pods", "shop/web-3")
	s.SetDown(false)
	await("web-2 10.2.0.22")
	n.AwaitHealth(t, component.Healthy, "found 2 targets")

	n.Update(t, body("lab"))
	await("other 10.3.0.1")
	n.Update(t, body("empty"))
	await()
}

func TestKubeconfig(t *testing.T) {
	s := discoverytest.NewAPIServer(t, true)
	s.Populate()
	encrypted := httptest.NewTLSServer(s) // otherwise, the client sends no token
	t.Cleanup(func() {
		encrypted.CloseClientConnections()
		encrypted.Close()
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	body := fmt.Sprintf("role = \"node\"\nkubeconfig_file = %q", path)
	r := kubernetes.Registration()
	args, mistakes := discoverytest.Decode(t, r, body)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	if _, err := r.Build(componenttest.New(t, "k").Options(), args, nil); err == nil || !strings.Contains(err.Error(), "cannot set up discovery kubernetes") {
		t.Errorf("without a kubeconfig: got %v", err)
	}
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
		"clusters": [{"name": "k", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}], "users": [{"name": "u", "user": {"token": "t0ken"}}]}`, encrypted.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := discoverytest.Run(t, r, body)
	n.Await(t, "the node", func(ts []map[string]string) bool { return len(ts) == 1 && ts[0]["__address__"] == "10.1.0.1:10250" })
	if got := n.Component.Sourced(); len(got) != 1 || got[0] != path {
		t.Errorf("got sourced %q, want the kubeconfig", got)
	}
	if got := s.Authorization(); got != "Bearer t0ken" {
		t.Errorf("asked with Authorization %q", got)
	}
}

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, kubernetes.Registration(), body, want...)
	}
	const selector = "role = \"pod\"\nselectors {\n\trole = %q\n\t%s\n}\n"
	f("role = \"pod\"\nnamespaces {\n\town_namespace = true\n}")
	f("role = \"pod\"\nkubeconfig_file = \"k\"")
	f(fmt.Sprintf(selector, "node", `label = "a in (b, c)"`))
	f(``, "missing required attribute role")
	f(`role = "deployment"`, `role must be node, pod, service, endpoints, endpointslice or ingress, not "deployment"`)
	f("role = \"pod\"\napi_server = \"kubernetes\"", `api_server "kubernetes" must be an http:// or https:// address`)
	f("role = \"pod\"\napi_server = \"https://k/\"\nkubeconfig_file = \"k\"", "kubeconfig_file and api_server cannot be set together")
	f("role = \"pod\"\nkubeconfig_file = \"k\"\nbearer_token = \"t\"", "have no effect with kubeconfig_file")
	f("role = \"pod\"\nbearer_token = \"t\"", "the HTTP client's arguments need api_server")
	f("role = \"pod\"\napi_server = \"https://k/\"\nnamespaces {\n\town_namespace = true\n}", "own_namespace is of the cluster weir runs in")
	f(fmt.Sprintf(selector, "service", ""), `with role = "pod" a selector may be about pod, node, not "service"`)
	f(fmt.Sprintf(selector, "pod", `label = "a in"`), "selectors: label:")
	f(fmt.Sprintf(selector, "pod", `field = "a"`), "selectors: field:")
	f(fmt.Sprintf(selector+selector[len("role = \"pod\"\n"):], "pod", "", "pod", ""), "selectors: there are two for the role pod")
}
