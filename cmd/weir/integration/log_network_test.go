//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// TestLogSyslog sends messages of `logger` from util-linux, by TCP and UDP in
// both formats, to a real Loki.
func TestLogSyslog(t *testing.T) {
	t.Parallel()
	logger, err := exec.LookPath("logger")
	if err != nil {
		t.Skip("there is no logger here")
	}
	loki := startLoki(t)
	dir := t.TempDir()
	ports := [3]int{freePort(t), freePort(t), freePort(t)}
	write(t, filepath.Join(dir, "config.alloy"), fmt.Sprintf(`
loki.relabel "syslog" {
  rule {
    source_labels = ["__syslog_message_app_name"]
    target_label  = "app"
  }
  rule {
    source_labels = ["__syslog_message_severity"]
    target_label  = "level"
  }
  forward_to = []
}

loki.source.syslog "in" {
  listener {
    address       = "127.0.0.1:%d"
    labels        = { way = "tcp" }
  }
  listener {
    address       = "127.0.0.1:%d"
    protocol      = "udp"
    labels        = { way = "udp" }
  }
  listener {
    address       = "127.0.0.1:%d"
    syslog_format = "rfc3164"
    labels        = { way = "old" }
  }
  relabel_rules = loki.relabel.syslog.rules
  forward_to    = [loki.write.out.receiver]
}
`, ports[0], ports[1], ports[2])+lokiWrite(loki.endpoint()))
	weir := startWeir(t, dir)
	f := func(way string, port int, flags ...string) {
		t.Helper()
		eventually(t, "logger sends", func() error { // the listener may not be ready yet
			cmd := exec.Command(logger, append([]string{"--server", "127.0.0.1", "--port", fmt.Sprint(port), "--tag", "app-" + way, "--priority", "user.warning"}, flags...)...)
			cmd.Stdin = strings.NewReader("first line of " + way + "\nsecond line of " + way + "\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			if n, err := loki.count(fmt.Sprintf(`{way=%q}`, way)); n < 2 {
				return fmt.Errorf("%d lines, %v", n, err)
			}
			return nil
		})
		want := map[string]bool{"first line of " + way: true, "second line of " + way: true}
		for _, e := range loki.mustQuery(t, fmt.Sprintf(`{way=%q}`, way)) {
			if !want[e.line] || e.labels["app"] != "app-"+way || e.labels["level"] != "warning" {
				t.Errorf("%s: got %v %q", way, e.labels, e.line)
			}
		}
	}
	f("tcp", ports[0], "--tcp", "--octet-count", "--rfc5424")
	f("udp", ports[1], "--udp", "--rfc5424")
	f("old", ports[2], "--tcp", "--rfc3164")
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestLogTenants sends the lines of each file to its own tenant of a multi-tenant
// Loki, and lines without a tenant to the tenant of the endpoint.
func TestLogTenants(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 3, JSON: true, Seed: 14})
	loki := startLokiWith(t, true)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.process.tenants.receiver")+`
loki.process "tenants" {
  stage.regex {
    expression = "seq\":\"#(?P<tenant>0000[01])"
  }
  stage.tenant {
    source = "tenant"
  }
  forward_to = [loki.write.out.receiver]
}
`+lokiWrite(loki.endpoint(`tenant_id = "others"`)))
	weir := startWeir(t, dir)
	for range 5 {
		l.add(300)
	}
	var all []entry
	for _, tenant := range []string{"00000", "00001", "others"} {
		loki.tenant = tenant
		loki.arrive(t, `{job="load"}`, 1500)
		got := loki.mustQuery(t, `{job="load"}`)
		if len(got) != 1500 {
			t.Errorf("%s has %d lines", tenant, len(got))
		}
		for _, e := range got {
			if len(e.labels) != 2 {
				t.Fatalf("%s has the labels %v", tenant, e.labels)
			}
		}
		all = append(all, got...)
	}
	if err := l.judge(all, nil); err != nil {
		t.Error(err)
	}
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
