// Package natives_test runs the native components together, in the real engine.
package natives_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	weirhttp "github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/service/telemetry"
	"github.com/weir-run/weir/natives"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// locked is a log that a test can read while it is written.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// graph returns a config with all natives, whose nodes have the given label. v
// varies the arguments. The host's exporter is omitted if the system does not
// support it.
func graph(label, v, dir, url string) string {
	host, targets := "", "prometheus.exporter.self."+label+".targets"
	if runtime.GOOS == "linux" {
		host = fmt.Sprintf("prometheus.exporter.unix %q {\n\tset_collectors = [\"loadavg\"]\n}\n", label)
		targets = "array.concat(" + targets + ", prometheus.exporter.unix." + label + ".targets)"
	}
	return strings.NewReplacer("LABEL", label, "VALUE", v, "DIR", dir, "URL", url, "TARGETS", targets).Replace(host + `
prometheus.exporter.self "LABEL" { }

discovery.file "LABEL" {
	files = ["DIR/targets-VALUE.json", "DIR/targets.json"]
}

discovery.relabel "LABEL" {
	targets = discovery.file.LABEL.targets

	rule {
		target_label = "v"
		replacement  = "VALUE"
	}
}

local.file "LABEL" {
	filename  = "DIR/password"
	is_secret = true
}

prometheus.scrape "LABEL" {
	targets         = TARGETS
	scrape_interval = "15s"
	job_name        = "VALUE"
	forward_to      = [prometheus.relabel.LABEL.receiver]
}

prometheus.relabel "LABEL" {
	forward_to = [expr.filter.LABEL.receiver]

	rule {
		target_label = "v"
		replacement  = "VALUE"
	}
}

expr.filter "LABEL" {
	drop       = "labels.v == '' || name == 'VALUE'"
	forward_to = [expr.set.LABEL.receiver]
}

expr.set "LABEL" {
	value = "value * 1"

	label "set" {
		value = "'VALUE'"
	}

	forward_to = [prometheus.enrich.LABEL.receiver]
}

prometheus.enrich "LABEL" {
	targets            = [{ v = "VALUE", owner = remote.http.LABEL.content }]
	target_match_label = "v"
	forward_to         = [expr.route.LABEL.receiver]
}

expr.route "LABEL" {
	route "one" {
		when = "value > 3 && labels.set == 'VALUE'"

		forward_to = [prometheus.remote_write.LABEL.receiver]
	}

	forward_to = [prometheus.remote_write.LABEL.receiver]
}

remote.http "LABEL" {
	url  = "URL"
	body = "VALUE"
}

local.file_match "LABEL" {
	path_targets = [{ __path__ = "DIR/*", v = "VALUE" }]
}

prometheus.exporter.static "LABEL" {
	text = "VALUE 1\n"
}

prometheus.echo "LABEL" { }

prometheus.receive_http "LABEL" {
	http {
		listen_address = "127.0.0.1"
		listen_port    = 0
	}
	forward_to = [prometheus.echo.LABEL.receiver]
}

prometheus.remote_write "LABEL" {
	endpoint {
		url = "URL"

		basic_auth {
			username = "VALUE"
			password = local.file.LABEL.content
		}
	}
}
`)
}

// TestHundredRebuilds reloads a hundred times, half of them with other nodes and
// half with other arguments, and checks that removed nodes leave no metrics,
// goroutines or errors.
func TestHundredRebuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	arrived := make(chan struct{}, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); strings.HasPrefix(user, "v") && pass == "secret" {
			select {
			case arrived <- struct{}{}:
			default:
			}
		}
	}))
	defer endpoint.Close()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("password", "secret")
	write("targets.json", `[{"targets": ["127.0.0.1:1"]}]`)
	write("c.alloy", graph("a", "v0", dir, endpoint.URL))

	var log locked
	tel, err := telemetry.New(telemetry.Options{Output: &log})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	once := sync.OnceFunc(func() { close(started) })
	e, err := engine.New(engine.Options{
		Catalogs:    []component.Catalog{component.NewList(natives.All()...)},
		Services:    []service.Service{tel, weirhttp.New(weirhttp.Options{Gatherer: tel.Gatherer(), Logger: tel.Logger()})},
		Logger:      tel.Logger(),
		Registerer:  tel.Registerer(),
		StoragePath: filepath.Join(dir, "data"),
		NoWatch:     true,
		Announce:    func(string) { once() },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, filepath.Join(dir, "c.alloy")) }()
	select {
	case <-started:
	case err := <-done:
		t.Fatalf("the engine ended: %v\n%s", err, log.String())
	}

	ids := func() (ids []string) {
		for _, c := range e.ListComponents() {
			ids = append(ids, c.ID)
			if c.Health.State == component.Unhealthy || c.Health.State == component.Exited {
				t.Errorf("%s is %s: %s", c.ID, c.Health.State, c.Health.Message)
			}
		}
		return ids
	}
	for i := range 100 {
		label := []string{"a", "a", "b", "b"}[i%4]
		write("c.alloy", graph(label, fmt.Sprint("v", i), dir, endpoint.URL))
		if err := e.Reload(ctx); err != nil {
			t.Fatal(err)
		}
		if want := len(ids()); want != 17 && (runtime.GOOS == "linux" || want != 16) {
			t.Fatalf("reload %d: got %d nodes", i, want)
		}
	}

	select {
	case <-arrived:
	case <-time.After(time.Minute):
		t.Errorf("no sample arrived; the log:\n%s", log.String())
	}
	fams, err := tel.Gatherer().Gather()
	if err != nil {
		t.Errorf("cannot gather: %v", err)
	}
	seen := map[string]bool{}
	nodes := ids()
	for _, f := range fams {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() != "component_id" {
					continue
				}
				seen[l.GetValue()] = true
				if !slices.Contains(nodes, l.GetValue()) {
					t.Errorf("%s is still there for %s", f.GetName(), l.GetValue())
				}
			}
		}
	}
	if len(seen) != len(nodes) {
		t.Errorf("got metrics of %v, want some of each of %v", seen, nodes)
	}

	cancel()
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the engine ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the engine does not end")
	}
	if strings.Contains(log.String(), "level=error") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log has errors or a secret:\n%s", log.String())
	}
}
