//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// TestLogBetweenWeirs sends lines from one weir to another with Loki's push API,
// and from there to a real Loki, while the weir in the middle is stopped, killed
// and started. Every line arrives exactly once.
func TestLogBetweenWeirs(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 4, JSON: true, Seed: 13})
	loki, port := startLoki(t), freePort(t)
	edge, middle := t.TempDir(), t.TempDir()
	write(t, filepath.Join(edge, "config.alloy"), l.source("loki.write.out.receiver")+
		lokiWrite(endpointBlock(fmt.Sprint("http://127.0.0.1:", port))))
	write(t, filepath.Join(middle, "config.alloy"), fmt.Sprintf(`
loki.source.api "in" {
  http {
    listen_address = "127.0.0.1"
    listen_port    = %d
  }
  labels                 = { through = "middle" }
  use_incoming_timestamp = true
  forward_to             = [loki.write.out.receiver]
}
`, port)+lokiWrite(loki.endpoint()))
	sender := startWeir(t, edge)
	l.flow(30)
	for i := range 5 {
		receiver := startWeir(t, middle)
		before := l.written()
		eventually(t, "lines are written", func() error { return l.atLeast(before + 2000) })
		loki.arrive(t, `{through="middle"}`, before)
		if i%2 == 0 {
			receiver.kill()
		} else if code := receiver.stop(); code != 0 {
			t.Errorf("exit status %d after SIGTERM", code)
		}
	}
	l.pause()
	receiver := startWeir(t, middle)
	l.whole(loki, `{through="middle"}`)
	noneDropped(t, sender)
	noneDropped(t, receiver)
	for _, weir := range []*weirRun{sender, receiver} {
		if code := weir.stop(); code != 0 {
			t.Errorf("exit status %d after SIGTERM", code)
		}
	}
}
