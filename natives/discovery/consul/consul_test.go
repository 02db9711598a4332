package consul_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	upstream "github.com/prometheus/prometheus/discovery/consul"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/consul"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
)

func TestSameAsPrometheus(t *testing.T) {
	a := discoverytest.NewAgent(t)
	a.Set("web", discoverytest.Instance("10.0.0.1", 80), discoverytest.Instance("", 81, "blue", "tag1"))
	a.Set("db", discoverytest.Instance("10.0.0.2", 5432, "blue"))
	f := func(more, text string, targets int) {
		t.Helper()
		discoverytest.Same(t, consul.Registration(), fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\n", a.Host())+more, new(upstream.SDConfig),
			fmt.Sprintf("server: %q\nrefresh_interval: 20ms\n", a.Host())+text, targets).Stop()
	}
	f("", "", 3)
	f("services = [\"web\"]\ntag_separator = \";\"", "services: [web]\ntag_separator: ';'", 2)
	f("datacenter = \"dc9\"", "datacenter: dc9", 3)
	f("tags = [\"tag1\"]", "tags: [tag1]", 2)
}

func TestRequests(t *testing.T) {
	a := discoverytest.NewAgent(t)
	a.Set("web", discoverytest.Instance("10.0.0.1", 80))
	f := func(args, auth string, want ...string) {
		t.Helper()
		n := discoverytest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\n", a.Host())+args)
		n.Await(t, "a target", func(ts []map[string]string) bool { return len(ts) == 1 })
		n.Stop()
		asked, got := a.Requests()
		for _, w := range want {
			if !slices.Contains(asked, w) {
				t.Errorf("%s: asked %q, want %q among it", args, asked, w)
			}
		}
		if got != auth {
			t.Errorf("%s: authenticated with %q, want %q", args, got, auth)
		}
	}
	f("token = \"t\"", "t", "/v1/agent/self?", "/v1/catalog/services?stale=", "/v1/health/service/web?stale=")
	f("username = \"u\"\npassword = \"p\"\nallow_stale = false", "Basic dTpw", "/v1/health/service/web?")
	f("bearer_token = \"b\"\ndatacenter = \"d\"\nnamespace = \"n\"\npartition = \"p\"\nservices = [\"web\"]", "Bearer b", "/v1/health/service/web?dc=d&ns=n&partition=p&stale=")
	f("filter = \"a == b\"\nhealth_filter = \"c == d\"\ntags = [\"tag1\"]\nnode_meta = { r = \"1\" }", "",
		"/v1/catalog/services?filter=a+%3D%3D+b&node-meta=r%3A1&stale=", "/v1/health/service/web?filter=c+%3D%3D+d&node-meta=r%3A1&stale=&tag=tag1")
}

func TestChanges(t *testing.T) {
	a := discoverytest.NewAgent(t)
	body := func(more string) string {
		return fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\n", a.Host()) + more
	}
	a.Set("web", discoverytest.Instance("10.0.0.1", 80))
	a.Set("db", discoverytest.Instance("10.0.0.2", 5432))
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
	a.Set("web", discoverytest.Instance("10.0.0.1", 80), discoverytest.Instance("10.0.0.1", 90))
	await("db 10.0.0.2:5432", "web 10.0.0.1:80", "web 10.0.0.1:90")
	a.Set("db")
	await("web 10.0.0.1:80", "web 10.0.0.1:90")
	a.Set("cache", discoverytest.Instance("10.0.0.3", 6379))
	await("cache 10.0.0.3:6379", "web 10.0.0.1:80", "web 10.0.0.1:90")
	n.Update(t, body(`services = ["cache"]`))
	await("cache 10.0.0.3:6379")
	n.AwaitHealth(t, component.Healthy, "found 1 target")
}

// TestAgentFails: after an error, Prometheus's discoverer sleeps for 15 s, during
// which the component is unhealthy without a message.
func TestAgentFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s")
	}
	a := discoverytest.NewAgent(t)
	a.Set("web", discoverytest.Instance("10.0.0.1", 80))
	n := discoverytest.Run(t, consul.Registration(), fmt.Sprintf("server = %q\nrefresh_interval = \"20ms\"\nservices = [\"web\"]", a.Host()))
	one := func(ts []map[string]string) bool { return len(ts) == 1 }
	n.Await(t, "a target", one)
	a.SetDown(true)
	n.AwaitHealth(t, component.Unhealthy, "service web")
	if !one(n.Targets()) {
		t.Errorf("%d targets are left, want 1", len(n.Targets()))
	}
	a.SetDown(false)
	a.Set("web", discoverytest.Instance("10.0.0.1", 80), discoverytest.Instance("10.0.0.1", 90))
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
