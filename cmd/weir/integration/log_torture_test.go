//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// TestLogTorture combines many faults in a random order: files are rotated in
// every way, weir is killed, stopped and reloaded, the script is saved, the
// network is cut and Loki restarts, while lines are written. Loki has every line
// exactly once and in order. WEIR_SEED sets the seed.
func TestLogTorture(t *testing.T) {
	t.Parallel()
	const steps = 30
	seed := uint64(1)
	if v := os.Getenv("WEIR_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEIR_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	l := startLines(t, logfiles.Options{Files: 5, JSON: true, Seed: seed})
	loki := startLoki(t)
	dir := t.TempDir()
	saved := 0
	save := func() {
		saved++
		write(t, filepath.Join(dir, "scripts", "demo", "mark.lua"), fmt.Sprintf(`local weir = require "weir"
return weir.transform { logs = function(batch, ctx) batch:json({ "seq" }, function(seq, r) r.metadata.seq, r.metadata.v = seq, "x" end) end }
`+"-- %d\n", saved))
	}
	config := func(n int) {
		write(t, filepath.Join(dir, "config.alloy"), l.source("loki.process.p.receiver", fmt.Sprintf("file_watch {\n    min_poll_frequency = \"%dms\"\n    max_poll_frequency = \"250ms\"\n  }", 100+n%3*50))+`
loki.process "p" {
  stage.json {
    expressions = { level = "" }
  }
  stage.structured_metadata {
    values = { level = "" }
  }
  stage.static_labels {
    values = { p = "x" }
  }
  forward_to = [demo.mark.m.receiver]
}

demo.mark "m" {
  forward_to = [loki.write.out.receiver]

  script {
    limits { time = "10s" }
  }
}
`+lokiWrite(loki.endpoint(fmt.Sprintf(`batch_size = "%dKiB"`, 64+n*10))))
	}
	save()
	config(0)
	weir := startWeir(t, dir)
	taken := func() {
		// The source has read every line, so the files may be removed.
		l.pause()
		l.whole(loki, `{job="load"}`)
	}
	up := true
	for step := range steps {
		if l.quit == nil {
			l.flow(10 + r.IntN(60))
		}
		until := l.written() + 200 + r.IntN(2000)
		eventually(t, "lines are written", func() error { return l.atLeast(until) })
		file := r.IntN(l.files)
		switch what := r.IntN(9); what {
		case 0, 1:
			n := 1 + r.IntN(3)
			t.Logf("%d: %d is renamed %d times", step, file, n)
			for range n {
				l.rotate(file, logfiles.Rename, r.IntN(30))
			}
		case 2:
			if !up {
				continue
			}
			taken() // a copy of an unread file cannot be recognised
			t.Logf("%d: %d is copied and truncated", step, file)
			l.add(20)
			l.rotate(file, logfiles.CopyTruncate, 0)
		case 3:
			if !up {
				continue
			}
			taken()
			t.Logf("%d: %d is removed and made again", step, file)
			l.rotate(file, logfiles.Recreate, r.IntN(30))
			taken() // a kill loses files that are only reachable through an open handle
		case 4:
			t.Logf("%d: kill -9", step)
			weir.kill()
			if r.IntN(2) == 0 {
				l.rotate(file, logfiles.Rename, r.IntN(30))
			}
			weir = startWeir(t, dir)
		case 5:
			t.Logf("%d: SIGTERM", step)
			stopsSoon(t, weir)
			weir = startWeir(t, dir)
		case 6:
			t.Logf("%d: reload", step)
			weir.after(func() { config(step + 1) }, `reloaded config\.alloy.*\n`)
		case 7:
			t.Logf("%d: the script is saved", step)
			weir.after(save, `reloaded demo\.mark.*\n`)
		case 8:
			if up = !up; up {
				t.Logf("%d: the network is back", step)
				loki.wire.up(t)
			} else {
				t.Logf("%d: the network is cut", step)
				loki.wire.cut()
			}
		}
	}
	if !up {
		loki.wire.up(t)
	}
	l.pause()
	for _, e := range l.whole(loki, `{job="load"}`) {
		if mark, n, _ := logfiles.Find([]byte(e.metadata["seq"])); e.metadata["level"] == "" || e.metadata["v"] == "" || fmt.Sprint(string(mark), n) == "" {
			t.Errorf("%q arrived with the metadata %v", e.line, e.metadata)
			break
		}
	}
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
