//go:build integration && linux

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/files/filestest"
)

// TestDeadMount: components read files below a mount whose server does not
// respond. Status, reloads and other nodes continue to work, and weir ends within
// its shutdown timeout.
func TestDeadMount(t *testing.T) {
	t.Parallel()
	dead, dir := filestest.Dead(t), t.TempDir()
	good := startLoad(t, 100)
	endpoint := startRecorder(t)
	lines := filepath.Join(dir, "lines.log")
	write(t, lines, "a first line\n")
	var logs strings.Builder
	for i := range 200 {
		fmt.Fprintf(&logs, "{ __path__ = %q },\n", filepath.Join(dead, fmt.Sprint(i), "x.log"))
	}
	config := good.scrapeBlock(3, "1s", "prometheus.remote_write.out.receiver") + fmt.Sprintf(`
prometheus.remote_write "out" {
  endpoint {
    url = %[1]q
  }
}
loki.echo "out" { }
loki.source.file "dead" {
  targets = [
%[3]s
  ]
  forward_to = [loki.echo.out.receiver]
}
loki.source.file "good" {
  targets    = [{ __path__ = %[4]q }]
  forward_to = [loki.echo.out.receiver]
}
local.file_match "dead" {
  path_targets = [{ __path__ = "%[2]s/**/*.log" }]
}
local.file "dead" {
  filename = "%[2]s/x"
}
discovery.file "dead" {
  files = ["%[2]s/*.json"]
}
`, endpoint.URL, dead, logs.String(), lines)
	path := filepath.Join(dir, "config.alloy")
	write(t, path, config)
	weir := startWeir(t, dir, "--shutdown-timeout=10s")
	good.scrapedAfter(t, 3, time.Now())
	for reload := range 2 {
		write(t, path, fmt.Sprintf("%s// %d\nlocal.file \"more%d\" {\n filename = %q\n}\n", config, reload, reload, lines))
		weir.await(reload+1, `reloaded config\.alloy.*`)
		good.scrapedAfter(t, 3, time.Now())
	}
	eventually(t, "the nodes are unhealthy", func() error {
		page := metricsPage(t, weir)
		for _, id := range []string{"loki.source.file.dead", "local.file_match.dead", "local.file.dead", "discovery.file.dead"} {
			if !strings.Contains(page, `weir_component_unhealthy_since_timestamp_seconds{component_id="`+id+`"`) {
				return fmt.Errorf("%s is healthy", id)
			}
		}
		return nil
	})
	began := time.Now()
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	t.Logf("weir stopped after %s", time.Since(began).Round(time.Second))
}
