package docker_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/discovery/moby"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
	"github.com/weir-run/weir/natives/discovery/docker"
)

// recorded returns the responses of a real Docker daemon from Prometheus's own
// tests.
func recorded(t *testing.T, file string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "discovery/moby/testdata/dockerprom", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newDaemon(t *testing.T) *discoverytest.Docker {
	d := new(discoverytest.Docker)
	d.Set(recorded(t, "containers/json.json"), recorded(t, "networks.json"))
	return d
}

func TestSameAsPrometheus(t *testing.T) {
	d := newDaemon(t)
	unix := d.Socket(t)
	tcp := httptest.NewServer(d)
	t.Cleanup(tcp.Close)

	f := func(args, text string, targets int) {
		t.Helper()
		for _, host := range []string{unix, tcp.URL} {
			discoverytest.Same(t, docker.Registration(), fmt.Sprintf("host = %q\n", host)+args, new(moby.DockerSDConfig),
				fmt.Sprintf("host: %q\n", host)+text, targets).Stop()
		}
	}
	f("", "", 8)
	f("match_first_network = false", "match_first_network: false", 13)
	f("port = 8989\nhost_networking_host = \"h\"", "port: 8989\nhost_networking_host: h", 8)
	f("filter {\n\tname = \"label\"\n\tvalues = [\"a\", \"b\"]\n}", "filters: [{name: label, values: [a, b]}]", 8)
	if got, want := d.Filters(), `{"label":{"a":true,"b":true}}`; got != want {
		t.Errorf("asked for the filters %v, want %v", got, want)
	}
}

// TestDaemonFails: known containers stay.
func TestDaemonFails(t *testing.T) {
	d := newDaemon(t)
	n := discoverytest.Run(t, docker.Registration(), fmt.Sprintf("host = %q\nrefresh_interval = \"10ms\"", d.Socket(t)))
	some := func(ts []map[string]string) bool { return len(ts) == 8 }
	n.Await(t, "containers", some)
	d.SetDown(true)
	n.AwaitHealth(t, component.Unhealthy, "out of order")
	if !some(n.Targets()) {
		t.Errorf("%d targets are left, want 8", len(n.Targets()))
	}
	d.SetDown(false)
	n.AwaitHealth(t, component.Healthy, "found 8 targets")
}

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, docker.Registration(), body, want...)
	}
	f(`host = "unix:///var/run/docker.sock"`)
	f(`host = "tcp://d:2375"`)
	f("host = \"https://d:2376\"\nbearer_token = \"t\"")
	f(``, "missing required attribute host")
	f(`host = "docker"`, `host "docker" needs a scheme`)
	f(`host = "unix://a%zz"`, "host: parse")
	f(`host = "tcp://"`, `host "tcp://" says nothing behind its scheme`)
	f("host = \"unix:///d\"\nfilter {\n\tname = \"\"\n\tvalues = [\"x\"]\n}", "filter: name must not be empty")
	f("host = \"unix:///d\"\nbearer_token = \"t\"", `host "unix:///d" is not reached by the HTTP client`)
	f("host = \"tcp://d:1\"\ntls_config {\n\tinsecure_skip_verify = true\n}", `write an http:// or https:// address`)
	f("host = \"unix:///d\"\nport = 70000\nrefresh_interval = \"-1s\"", "port must be from 0 to 65535", "refresh_interval is -1s")
	f("host = \"unix:///d\"\nfilter {\n\tname = \"label\"\n}", "missing required attribute filter.values")
}
