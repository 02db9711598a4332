//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// logMark is a script that marks lines with its version.
const logMark = `local weir = require "weir"
return weir.transform {
  stream = function(s, ctx) s.labels.v = "%d" end,
  logs = function(batch, ctx) batch:drop_where [[ line == "nothing" ]] end,
}
`

// TestLogReloadsUnderLoad changes the path of the lines three times per second:
// directly, through stages, through a script, or through both. The source, the
// stages, the sink and the script change and nodes are added and removed, by
// saves and by SIGHUP, while files are written and renamed. Every line arrives
// exactly once, and in order in each stream.
func TestLogReloadsUnderLoad(t *testing.T) {
	const changes = 60
	l := startLines(t, logfiles.Options{Files: 5, JSON: true, Seed: 8})
	endpoint := startPushRecorder(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "config.alloy")
	config := func(n int) string {
		const out, process, script = "loki.write.out.receiver", "loki.process.p.receiver", "demo.mark.m.receiver"
		way := [][]string{{out}, {process, out}, {process, script, out}, {script, out}, {script, process, out}, {process, out}}[n%6]
		var b strings.Builder
		b.WriteString(l.source(way[0], fmt.Sprintf("file_watch {\n    min_poll_frequency = \"%dms\"\n    max_poll_frequency = \"250ms\"\n  }", 50+n%3*50)))
		for i, at := range way {
			switch at {
			case process:
				fmt.Fprintf(&b, "loki.process \"p\" {\n  stage.json { expressions = { status = \"\" } }\n  stage.static_labels { values = { p = \"%d\" } }\n  forward_to = [%s]\n}\n", n%5, way[i+1])
			case script:
				fmt.Fprintf(&b, "demo.mark \"m\" {\n  forward_to = [%s]\n\n  script {\n    limits { time = \"10s\" }\n  }\n}\n", way[i+1])
			}
		}
		b.WriteString(lokiWrite(endpoint.endpoint(fmt.Sprintf("batch_size = \"%dKiB\"", 64+n%2*64))))
		return b.String()
	}
	write(t, filepath.Join(dir, "scripts", "demo", "mark.lua"), fmt.Sprintf(logMark, 0))
	write(t, path, config(0))
	weir := startWeir(t, dir)
	l.flow(20)
	for n := 1; n <= changes; n++ {
		weir.after(func() {
			write(t, path, config(n))
			if n%5 == 0 {
				weir.cmd.Process.Signal(syscall.SIGHUP)
			}
		}, `reloaded config\.alloy.*\n`)
		if n%6 >= 2 && n%6 <= 4 && n%5 != 0 { // the reload of the signal may come later and include the script
			weir.after(func() { write(t, filepath.Join(dir, "scripts", "demo", "mark.lua"), fmt.Sprintf(logMark, n)) }, `reloaded demo\.mark.*\n`)
		}
		if n%10 == 0 {
			l.rotate(n/10%l.files, logfiles.Rename, 10)
		}
		from := l.written()
		eventually(t, "lines are written", func() error { return l.atLeast(from + 300) })
	}
	l.pause()
	endpoint.whole(t, l)
	if endpoint.again > 0 {
		t.Errorf("%d lines came twice", endpoint.again)
	}
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	if got := len(endpoint.byStream); got < 50 {
		t.Errorf("the lines came in %d streams: the ways were not taken", got)
	}
}
