package reload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/process"
	"github.com/weir-run/weir/engine/watch"
)

// fixedNodes is the number of nodes that every config has.
const fixedNodes = 10

func (r *run) config() string { return filepath.Join(r.o.Dir, "config.alloy") }

// writeConfig writes the config of r.nodes components. Data flows through the fixed ones:
// the probe, the load, the script that is saved, and the endpoints. The endpoint of the
// probe writes at once, since a push is not answered before it is written. The rest are
// pipelines of ten components each that run without data.
func (r *run) writeConfig() error {
	var b strings.Builder
	targets, files, rule := "", "[]", ""
	write, push := "http://127.0.0.1:1", "http://127.0.0.1:1" // nothing is sent without load
	if r.load {
		for _, a := range r.targets.Addresses() {
			targets += fmt.Sprintf("{ __address__ = %q }, ", a)
		}
		files = fmt.Sprintf("[{ __path__ = %q }]", filepath.Join(r.o.Dir, "logs", "*.log"))
		write, push = "http://"+r.sink.Address()+"/api/v1/write", "http://"+r.logs.Address()+"/loki/api/v1/push"
	}
	if r.relabel {
		rule = fmt.Sprintf("\n  rule {\n    target_label = \"version\"\n    replacement  = \"%d\"\n  }\n", r.version)
	}
	fmt.Fprintf(&b, `prometheus.receive_http "probe" {
  http {
    listen_address = "127.0.0.1"
    listen_port    = 0
  }
  forward_to = [reload.work.default.receiver]
}

prometheus.scrape "load" {
  targets         = [%s]
  scrape_interval = "1s"
  scrape_timeout  = "1s"
  forward_to      = [reload.work.default.receiver]
}

local.file_match "load" {
  path_targets = %s
}

loki.source.file "load" {
  targets    = local.file_match.load.targets
  forward_to = [reload.work.default.receiver]
}

reload.work "default" {
  forward_to = [prometheus.relabel.probe.receiver, prometheus.relabel.load.receiver, loki.write.sink.receiver]

  script {
    on_reload = "swap"
  }
}

prometheus.relabel "probe" {
  forward_to = [prometheus.remote_write.probe.receiver]

  rule {
    source_labels = ["__name__"]
    regex         = %q
    action        = "keep"
  }
%s}

prometheus.remote_write "probe" {
  endpoint {
    url = "http://%s"
    queue_config {
      batch_send_deadline = "1ms"
    }
  }
}

prometheus.relabel "load" {
  forward_to = [prometheus.remote_write.sink.receiver]

  rule {
    source_labels = ["__name__"]
    regex         = %q
    action        = "drop"
  }
}

prometheus.remote_write "sink" {
  endpoint {
    url = %q
    queue_config {
      max_backoff = "300ms"
    }
  }
}

loki.write "sink" {
  endpoint {
    url                = %q
    min_backoff_period = "100ms"
    max_backoff_period = "300ms"
  }
}
`, targets, files, probeName, rule, r.probe.listener.Addr(), probeName, write, push)
	for i := range r.nodes - fixedNodes {
		writeIdle(&b, i/10, i%10)
	}
	return replace(r.config(), b.String())
}

// writeIdle writes component i of pipeline n.
func writeIdle(b *strings.Builder, n, i int) {
	switch i {
	case 0:
		fmt.Fprintf(b, "\nreload.idle \"p%d\" {\n  forward_to = [prometheus.remote_write.sink.receiver]\n}\n", n)
	case 1, 2, 3, 4, 5, 6:
		to := fmt.Sprintf("prometheus.relabel.p%d_%d", n, i-1)
		if i == 1 {
			to = fmt.Sprintf("reload.idle.p%d", n)
		}
		fmt.Fprintf(b, "\nprometheus.relabel \"p%d_%d\" {\n  forward_to = [%s.receiver]\n\n  rule {\n    target_label = \"pipeline\"\n    replacement  = \"%d\"\n  }\n}\n", n, i, to, n)
	case 7:
		fmt.Fprintf(b, "\nprometheus.scrape \"p%d\" {\n  targets    = []\n  forward_to = [prometheus.relabel.p%d_6.receiver]\n}\n", n, n)
	case 8:
		fmt.Fprintf(b, "\nloki.process \"p%d\" {\n  forward_to = [loki.write.sink.receiver]\n\n  stage.drop {\n    expression = \"debug\"\n  }\n}\n", n)
	case 9:
		fmt.Fprintf(b, "\ndiscovery.relabel \"p%d\" {\n  targets = []\n}\n", n)
	}
}

// writeScripts writes the version of the script that is saved, and the script of the idle
// pipelines.
func (r *run) writeScripts() error {
	if err := replace(filepath.Join(r.o.Dir, "scripts", "reload", "idle.lua"), `local weir = require "weir"

return weir.transform {
  series = function(s) s.labels.env = "production" end,
}
`); err != nil {
		return err
	}
	return r.writeScript()
}

func (r *run) writeScript() error {
	return replace(filepath.Join(r.o.Dir, "scripts", "reload", "work.lua"), fmt.Sprintf(`local weir = require "weir"

return weir.transform {
  series = function(s)
    if s.name == %q then s.labels.version = "%d" end
  end,
  logs = function(batch)
    batch:drop_where [[ line contains "version %d" ]]
  end,
}
`, probeName, r.version, r.version))
}

// replace writes a file as most editors do: completely or not at all.
func replace(path, content string) error {
	next := path + "~" // weir does not look at such names
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(next, []byte(content), 0o666)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("cannot save: %w", err)
	}
	return nil
}

// measureConfig changes one component of a config of n components again and again.
func (r *run) measureConfig(ctx context.Context, n int) error {
	r.load, r.relabel, r.nodes = false, true, n
	return r.serve(ctx, func(ctx context.Context) error {
		before, err := r.count(ctx, "weir_engine_builds_total", "")
		if err != nil {
			return err
		}
		saved, err := r.saveEvery(ctx, r.o.Changes, r.o.Every, r.writeConfig)
		if err != nil {
			return err
		}
		after, err := r.count(ctx, "weir_engine_builds_total", "")
		if err != nil {
			return err
		}
		s := r.probe.swaps(saved)
		what := fmt.Sprintf("one change in a config of %d components", n)
		limit := 50 * time.Millisecond
		if n > 500 {
			limit = 200 * time.Millisecond
		}
		r.table.times(what+", p50", limit, quantile(s.serving, 0.5)-watch.Quiet)
		r.table.distribution(what+", with the 20 ms of waiting", s.serving)
		rebuilt := (after - before) / float64(len(saved))
		r.table.promise(what+", nodes rebuilt", "≤ 1", fmt.Sprint(rebuilt), rebuilt <= 1)
		return nil
	})
}

// count returns a metric of weir, summed over the series with a label value, "" for all.
func (r *run) count(ctx context.Context, name, value string) (float64, error) {
	families, err := r.weir.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return process.Sum(families, name, value)
}
