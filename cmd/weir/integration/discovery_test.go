//go:build integration

package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/natives/discovery/discoverytest"
)

// found contains six kinds of discovery servers, each of which returns the same
// metrics server as its target.
type found struct {
	t          *testing.T
	port       string // of the metrics server
	dir        string
	http       *httptest.Server
	httpBody   chan string // blocks the response
	docker     *discoverytest.Docker
	dockerHost string
	kubernetes *discoverytest.APIServer
	consul     *discoverytest.Agent
	dns        *discoverytest.DNS // nil if port 53 cannot be used
	resolver   string
}

// startFound starts servers whose targets are served by handler.
func startFound(t *testing.T, handler http.Handler) *found {
	metrics := httptest.NewServer(handler)
	t.Cleanup(metrics.Close)
	_, port, err := net.SplitHostPort(metrics.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.2:"+port) // a second target
	if err != nil {
		t.Fatal(err)
	}
	second := httptest.NewUnstartedServer(handler)
	second.Listener.Close()
	second.Listener = other
	second.Start()
	t.Cleanup(second.Close)
	f := &found{
		t: t, port: port, dir: t.TempDir(), httpBody: make(chan string, 1),
		docker: new(discoverytest.Docker), kubernetes: discoverytest.NewAPIServer(t, true), consul: discoverytest.NewAgent(t),
	}
	f.dockerHost = f.docker.Socket(t)
	f.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := <-f.httpBody
		f.httpBody <- body
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(f.http.Close)
	f.httpBody <- "[]"
	// A random loopback address, so that concurrent tests use different ones.
	f.resolver = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	if _, err = exec.LookPath("unshare"); err == nil {
		f.dns, err = discoverytest.NewDNS(t, f.resolver+":53")
	}
	if err != nil {
		t.Logf("discovery.dns is left out: %v", err)
	}
	return f
}

// set makes every discovery server return the given hosts: 127.0.0.1, 127.0.0.2.
func (f *found) set(hosts ...string) {
	f.t.Helper()
	var quoted, containers []string
	for _, h := range hosts {
		quoted = append(quoted, fmt.Sprintf("%q", net.JoinHostPort(h, f.port)))
		containers = append(containers, fmt.Sprintf(`{"Id": %q, "Names": ["/web-%s"], "Image": "web:1", "Labels": {"com.example/team": "x"},
			"Ports": [{"PrivatePort": %s, "Type": "tcp"}], "HostConfig": {"NetworkMode": "bridge"},
			"NetworkSettings": {"Networks": {"bridge": {"NetworkID": "n1", "IPAddress": %q}}}}`, h, h, f.port, h))
	}
	list := "[" + strings.Join(quoted, ", ") + "]"
	tmp := filepath.Join(f.dir, "tmp")
	write(f.t, tmp, fmt.Sprintf(`[{"targets": %s, "labels": {"__meta_team": "x"}}]`, list))
	if err := os.Rename(tmp, filepath.Join(f.dir, "targets.json")); err != nil {
		f.t.Fatal(err)
	}
	<-f.httpBody
	f.httpBody <- fmt.Sprintf(`[{"targets": %s, "labels": {"__meta_rack": "r1"}}]`, list)
	f.docker.Set("["+strings.Join(containers, ", ")+"]", `[{"Id": "n1", "Name": "bridge", "Scope": "local"}]`)
	var port int
	fmt.Sscan(f.port, &port)
	for _, h := range []string{"127.0.0.1", "127.0.0.2"} {
		if slices.Contains(hosts, h) {
			f.kubernetes.Put("pods", discoverytest.Pod("web-"+h, h, port))
		} else {
			f.kubernetes.Remove("pods", "shop/web-"+h)
		}
	}
	services := []map[string]any{}
	for _, h := range hosts {
		services = append(services, discoverytest.Instance(h, port))
	}
	f.consul.Set("web", services...)
	if f.dns != nil {
		var records []string
		for _, h := range hosts {
			records = append(records, fmt.Sprintf("_metrics._tcp.example.org. 1 IN SRV 0 5 %s %s.", f.port, h))
		}
		f.dns.Set("_metrics._tcp.example.org. SRV", records...)
	}
}

// kinds returns the discovery configurations for weir and for Prometheus.
func (f *found) kinds() map[string][2]string {
	kinds := map[string][2]string{
		"file": {fmt.Sprintf("files = [%q]", filepath.Join(f.dir, "*.json")), fmt.Sprintf("file_sd_configs: [{files: [%q]}]", filepath.Join(f.dir, "*.json"))},
		"http": {fmt.Sprintf("url = %q\n  refresh_interval = \"200ms\"", f.http.URL), fmt.Sprintf("http_sd_configs: [{url: %q, refresh_interval: 200ms}]", f.http.URL)},
		"docker": {fmt.Sprintf("host = %q\n  refresh_interval = \"200ms\"", f.dockerHost),
			fmt.Sprintf("docker_sd_configs: [{host: %q, refresh_interval: 200ms}]", f.dockerHost)},
		"kubernetes": {fmt.Sprintf("role = \"pod\"\n  api_server = %q", f.kubernetes.URL), fmt.Sprintf("kubernetes_sd_configs: [{role: pod, api_server: %q}]", f.kubernetes.URL)},
		"consul": {fmt.Sprintf("server = %q\n  refresh_interval = \"200ms\"", f.consul.Host()),
			fmt.Sprintf("consul_sd_configs: [{server: %q, refresh_interval: 200ms}]", f.consul.Host())},
	}
	if f.dns != nil {
		kinds["dns"] = [2]string{"names = [\"_metrics._tcp.example.org\"]\n  refresh_interval = \"200ms\"",
			"dns_sd_configs: [{names: [_metrics._tcp.example.org], refresh_interval: 200ms}]"}
	}
	return kinds
}

// resolving makes weir and Prometheus use our DNS server: it replaces them by
// programs that start them with their own /etc/resolv.conf.
func (f *found) resolving() {
	if f.dns == nil {
		return
	}
	dir := f.t.TempDir()
	write(f.t, filepath.Join(dir, "resolv.conf"), "nameserver "+f.resolver+"\n")
	for name, program := range map[string]string{"weir": env(f.t, "WEIR"), "prometheus": filepath.Join(env(f.t, "SERVERS"), "prometheus")} {
		path := filepath.Join(dir, name)
		write(f.t, path, fmt.Sprintf("#!/bin/sh\nexec unshare -m sh -c 'mount --bind %s /etc/resolv.conf && exec %s \"$@\"' %s \"$@\"\n",
			filepath.Join(dir, "resolv.conf"), program, name))
		if err := os.Chmod(path, 0o700); err != nil {
			f.t.Fatal(err)
		}
	}
	f.t.Setenv("WEIR", filepath.Join(dir, "weir"))
	f.t.Setenv("SERVERS", dir)
}

// way returns the version of the script folder through which the targets of a
// kind go.
func way(kind string) string { return strconv.Itoa(int(kind[0]%2) + 1) }

// TestDiscovery runs every kind of discovery in one directory config, next to a
// real Prometheus that discovers the same targets. The targets go through a
// module and one of two versions of a script, and a foreach scrapes each of them
// separately. The labels of every target are equal, also when targets are added
// and removed.
func TestDiscovery(t *testing.T) {
	f := startFound(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello 1") }))
	f.resolving()
	f.set("127.0.0.1")
	kinds := f.kinds()

	text := "scrape_configs:\n"
	for kind, c := range kinds {
		text += fmt.Sprintf(`
- job_name: %s
  %s
  relabel_configs:
  - {action: labelmap, regex: __meta_(.+), replacement: meta_$1}
  - {target_label: via, replacement: prometheus}
  - {target_label: script, replacement: "%s"}
`, kind, c[1], way(kind))
	}
	prometheus := startPrometheus(t, text)

	dir := t.TempDir()
	write(t, filepath.Join(dir, "conf", "out.alloy"), remoteWrite(prometheus, "")+`
import.file "house" {
  filename = "../modules"
}

foreach "each" {
  collection = discovery.file.x.targets
  var        = "target"
  id         = "__address__"

  template {
    prometheus.scrape "one" {
      job_name        = "each"
      targets         = [target]
      scrape_interval = "500ms"
      scrape_timeout  = "400ms"
      forward_to      = [prometheus.remote_write.out.receiver]
    }
  }
}
`)
	write(t, filepath.Join(dir, "modules", "found.alloy"), foundModule)
	for _, v := range []string{"1", "2"} {
		write(t, filepath.Join(dir, "scripts-"+v, "demo", "mark.lua"), fmt.Sprintf(`local weir = require "weir"
return weir.transform { series = function(s, ctx) s.labels.script = "%s" end }
`, v))
		write(t, filepath.Join(dir, "conf", "scripts"+v+".alloy"), strings.ReplaceAll(`
import.scripts "vN" {
  path = "../scripts-N"
}

vN.demo.mark "x" {
  forward_to = [prometheus.remote_write.out.receiver]
}
`, "N", v))
	}
	for kind, c := range kinds {
		write(t, filepath.Join(dir, "conf", kind+".alloy"), strings.NewReplacer("KIND", kind, "ARGS", c[0], "WAY", way(kind)).Replace(`
discovery.KIND "x" {
  ARGS
}

house.found "KIND" {
  name       = "KIND"
  targets    = discovery.KIND.x.targets
  forward_to = [vWAY.demo.mark.x.receiver]
}
`))
	}
	weir := startWeirAt(t, dir, "conf")

	// same waits until both have n targets of every kind, and compares them.
	same := func(n int) {
		t.Helper()
		var ours, theirs []string
		eventually(t, fmt.Sprintf("%d items of the foreach", n), func() error {
			if got, err := number(prometheus, `count(hello{job="each"})`, time.Time{}); err != nil || got != float64(n) {
				return fmt.Errorf("%v items, %v", got, err)
			}
			return nil
		})
		eventually(t, fmt.Sprintf("%d targets of each kind", n), func() error {
			ours, theirs = f.instances(prometheus, "weir"), f.instances(prometheus, "prometheus")
			if want := n * len(kinds); len(ours) != want || len(theirs) != want {
				return fmt.Errorf("weir has %d and Prometheus %d, want %d:\n%s", len(ours), len(theirs), want, cmp.Diff(theirs, ours))
			}
			return nil
		})
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%d targets (-Prometheus +weir):\n%s", n, diff)
		}
	}
	same(1)
	f.set("127.0.0.1", "127.0.0.2")
	same(2)
	f.set("127.0.0.2")
	same(1)

	// A reload that changes a discovery request drops no target: each remaining
	// target is scraped without a marker in between.
	before := time.Now()
	conf := filepath.Join(dir, "conf", "http.alloy")
	old, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, conf, strings.Replace(string(old), `"200ms"`, `"300ms"`, 1))
	weir.await(1, `1 updated`)
	eventually(t, "it was scraped on for three seconds", func() error {
		if time.Since(before) < 3*time.Second {
			return errors.New("not yet")
		}
		n, err := number(prometheus, `count_over_time(hello{via="weir", job="http"}[3s])`, time.Time{})
		if err == nil && n < 5 {
			err = fatal{fmt.Errorf("got %v of 6 samples", n)}
		}
		return err
	})
	stale, err := number(prometheus, `count_over_time((absent(hello{via="weir", job="http"}))[3s:100ms])`, time.Time{})
	if err != nil || stale > 0 {
		t.Errorf("the target was gone for %v of 30 looks: %v", stale, err)
	}
	page := metricsPage(t, weir)
	for kind := range kinds {
		if want := fmt.Sprintf(`weir_discovery_targets{component_id="discovery.%s.x"} 1`, kind); !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("weir ended with %d", code)
	}
}

// instances returns the labels of the current targets, without the label of the
// scraper.
func (f *found) instances(prometheus, via string) (labels []string) {
	ss, err := query(prometheus, fmt.Sprintf(`hello{via=%q}`, via), time.Time{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, s := range ss {
		labels = append(labels, s.key("via"))
	}
	slices.Sort(labels)
	return labels
}

// foundModule declares a component that scrapes the discovered targets.
const foundModule = `
declare "found" {
  argument "name" { }

  argument "targets" { }

  argument "forward_to" { }

  discovery.relabel "meta" {
    targets = argument.targets.value

    rule {
      action      = "labelmap"
      regex       = "__meta_(.+)"
      replacement = "meta_$1"
    }

    rule {
      target_label = "via"
      replacement  = "weir"
    }
  }

  prometheus.scrape "meta" {
    job_name        = argument.name.value
    targets         = discovery.relabel.meta.output
    scrape_interval = "500ms"
    scrape_timeout  = "400ms"
    forward_to      = argument.forward_to.value
  }
}
`
