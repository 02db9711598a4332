//go:build integration

package integration

import (
	"maps"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// flat formats each entry with all its labels and metadata except way, in order
// per file.
func flat(es []entry) []string {
	all := make([]string, len(es))
	for i, e := range es {
		labels := maps.Clone(e.labels)
		maps.Copy(labels, e.metadata)
		maps.Copy(labels, e.parsed)
		// Loki's internal labels are not part of streams, and Loki stores no
		// labels with an empty value.
		maps.DeleteFunc(labels, func(name, value string) bool { return strings.HasPrefix(name, "__") || value == "" })
		all[i] = series{Metric: labels}.key("way") + "| " + e.line
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, _, _ := strings.Cut(all[i], "| ")
		b, _, _ := strings.Cut(all[j], "| ")
		return a < b
	})
	return all
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("%s: line %d of %d differs:\n%s\nwant\n%s", what, i, len(want), append(got, make([]string, len(want))...)[i], want[i])
			return
		}
	}
	if len(got) > len(want) {
		t.Errorf("%s: %d lines more, such as %s", what, len(got)-len(want), got[len(want)])
	}
}

// TestLogAlloyConfig runs a config written for Alloy, with only paths and
// addresses changed: files of a container runtime are found, parsed, cleaned and
// labelled.
func TestLogAlloyConfig(t *testing.T) {
	t.Parallel()
	loki := startLoki(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), strings.NewReplacer("DIR", dir, "URL", "http://"+loki.wire.addr).Replace(`
logging {
  level = "info"
}

local.file_match "pods" {
  path_targets = [{
    __path__ = "DIR/pods/*/*/*.log",
    cluster  = "test",
  }]
}

discovery.relabel "pods" {
  targets = local.file_match.pods.targets

  rule {
    source_labels = ["__path__"]
    regex         = ".*/pods/([^/_]+)_([^/_]+)_[^/]+/([^/]+)/.*"
    target_label  = "namespace"
    replacement   = "$1"
  }

  rule {
    source_labels = ["__path__"]
    regex         = ".*/pods/([^/_]+)_([^/_]+)_[^/]+/([^/]+)/.*"
    target_label  = "pod"
    replacement   = "$2"
  }

  rule {
    source_labels = ["__path__"]
    regex         = ".*/pods/([^/_]+)_([^/_]+)_[^/]+/([^/]+)/.*"
    target_label  = "container"
    replacement   = "$3"
  }
}

loki.source.file "pods" {
  targets    = discovery.relabel.pods.output
  forward_to = [loki.process.pods.receiver]
}

loki.process "pods" {
  forward_to = [loki.relabel.drop.receiver]

  stage.cri { }

  stage.match {
    selector = "{container=\"api\"} |= \"{\""

    stage.json {
      expressions = {
        level   = "level",
        ts      = "time",
        message = "msg",
        trace   = "ctx.trace_id",
      }
    }

    stage.timestamp {
      source = "ts"
      format = "RFC3339Nano"
    }

    stage.labels {
      values = { level = "" }
    }

    stage.structured_metadata {
      values = { trace = "" }
    }

    stage.output {
      source = "message"
    }
  }

  stage.multiline {
    firstline     = "^\\S"
    max_wait_time = "1s"
  }

  stage.replace {
    expression = "password=(\\S+)"
    replace    = "****"
  }

  stage.drop {
    expression          = "GET /healthz"
    drop_counter_reason = "healthz"
  }

  stage.label_drop {
    values = ["filename"]
  }
}

loki.relabel "drop" {
  forward_to = [loki.write.default.receiver]

  rule {
    source_labels = ["namespace"]
    regex         = "kube-system"
    action        = "drop"
  }
}

loki.write "default" {
  endpoint {
    url = "URL/loki/api/v1/push"
  }
  external_labels = { site = "lab" }
}
`))
	now := time.Now().UTC().Add(-30 * time.Second)
	at := func(i int) string { return now.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano) }
	appendTo(t, filepath.Join(dir, "pods/shop_api-1_uid/api/0.log"), strings.Join([]string{
		at(0) + ` stdout F {"level":"info","time":"` + at(100) + `","msg":"order taken","ctx":{"trace_id":"abc"}}`,
		at(1) + ` stdout P {"level":"error","time":"` + at(101) + `","msg":"order `,
		at(2) + ` stdout F lost","ctx":{"trace_id":"def"}}`,
		at(3) + ` stdout F {"level":"info","time":"` + at(102) + `","msg":"GET /healthz"}`,
		at(4) + ` stderr F login with password=secret failed`,
		at(5) + ` stderr F panic: boom`,
		at(6) + ` stderr F     at main.go:7`,
		at(7) + ` stderr F     at main.go:9`,
	}, "\n")+"\n")
	appendTo(t, filepath.Join(dir, "pods/kube-system_dns-1_uid/dns/0.log"), at(0)+" stdout F a query\n")
	weir := startWeir(t, dir)
	want := []string{
		`cluster="test" container="api" level="error" namespace="shop" pod="api-1" site="lab" stream="stdout" trace="def" | order lost`,
		`cluster="test" container="api" level="info" namespace="shop" pod="api-1" site="lab" stream="stdout" trace="abc" | order taken`,
		`cluster="test" container="api" namespace="shop" pod="api-1" site="lab" stream="stderr" | login with password=**** failed`,
		"cluster=\"test\" container=\"api\" namespace=\"shop\" pod=\"api-1\" site=\"lab\" stream=\"stderr\" | panic: boom\n    at main.go:7\n    at main.go:9",
	}
	loki.arrive(t, `{site="lab"}`, len(want))
	arrived := loki.mustQuery(t, `{site="lab"}`)
	sameLines(t, "the pods", flat(arrived), want)
	for _, e := range arrived {
		if e.line == "order lost" && e.ns != now.Add(101*time.Millisecond).UnixNano() {
			t.Errorf("%q has the time %s, want that in the line", e.line, time.Unix(0, e.ns).UTC())
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
