//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestFullDisk fills the disk of the journal while the endpoint is down, and then
// starts the endpoint: weir continues to run, reports the error and recovers by
// itself, and everything that it accepted arrives exactly once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	// A small file system for weir alone. It needs no root privileges if users
	// can create namespaces.
	if out, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot make a small file system here: %v: %s", err, out)
	}
	const targets = 10
	target := startLoad(t, 1000)
	prometheus := startPrometheus(t, "")
	wire := startLink(t, prometheus)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "config.alloy"),
		target.scrapeBlock(targets, "500ms", "prometheus.remote_write.out.receiver")+remoteWrite("http://"+wire.addr, ""))
	p := start(t, "unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=3m tmpfs "$1" && exec "$2" run --server.http.listen-addr=127.0.0.1:0 --storage.path="$1" "$3"`,
		"sh", data, env(t, "WEIR"), filepath.Join(dir, "config.alloy"))
	weir := &weirRun{process: p, url: p.await(1, pageLine)}
	eventually(t, "samples flow", func() error {
		n, err := number(prometheus, "count(load_total)", time.Time{})
		if err == nil && n != targets*1000 {
			return fmt.Errorf("%v series", n)
		}
		return err
	})

	wire.cut()
	weir.await(1, `(no space left on device)`)
	full := time.Now()
	target.scrapedAfter(t, targets, full)
	target.scrapedAfter(t, targets, time.Now())
	if n := accepted(t, weir); n == 0 {
		t.Error("nothing was accepted before the disk was full")
	}
	wire.up(t)
	healed := time.Now()
	target.scrapedAfter(t, targets, healed)
	served := make([]int, targets)
	for i := range served {
		served[i] = target.served(i)
	}
	eventually(t, "the backlog and new samples arrive", func() error {
		n, err := number(prometheus, fmt.Sprintf(`min(max_over_time(load_total{i="0"}[1m])) > %d`, served[0]+6), time.Time{})
		if err == nil && n == 0 {
			return fmt.Errorf("not yet")
		}
		return err
	})
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}

	lost := 0
	for i := range targets {
		for _, s := range mustQuery(t, prometheus, fmt.Sprintf(`load_total{target="%d",i=~"1?"}[30m]`, i), time.Time{}) {
			last := 0
			for _, n := range s.sequence(t) {
				switch {
				case n <= last:
					t.Errorf("%s: %d comes after %d", s.key(), n, last)
				case n != last+1:
					lost += n - last - 1
				}
				last = n
			}
		}
	}
	if lost == 0 {
		t.Error("nothing was refused: the disk was not full for long enough to prove anything")
	}
}
