//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// TestLogOutage writes 10,000 lines per second for half a minute to a weir whose
// endpoint is dead: its memory does not grow. WEIR_OUTAGE=10m extends this to ten
// minutes. Then the endpoint works again and receives the backlog.
func TestLogOutage(t *testing.T) {
	t.Parallel()
	long := 30 * time.Second
	if v := os.Getenv("WEIR_OUTAGE"); v != "" {
		var err error
		if long, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	l := startLines(t, logfiles.Options{Files: 10, JSON: true, Seed: 10})
	endpoint := startPushRecorder(t)
	endpoint.counts = true
	endpoint.set(dead)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.process.p.receiver")+`
loki.process "p" {
  stage.json {
    expressions = { level = "", status = "" }
  }
  stage.labels {
    values = { level = "" }
  }
  forward_to = [loki.write.out.receiver]
}
`+lokiWrite(endpoint.endpoint(`batch_size = "1MiB"`)))
	weir := startWeir(t, dir)
	l.flow(50)
	began, most := time.Now(), [2]int{}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < long {
		<-tick.C
		half := 0
		if time.Since(began) > long/2 {
			half = 1
		}
		most[half] = max(most[half], residentKiB(t, weir))
	}
	l.pause()
	l.taken(weir)
	stored := counterOf(t, metricsPage(t, weir), lokiWriteID, "weir_component_lines_in_total", "")
	t.Logf("%d lines were written in %s of outage, %v are in the journal; weir had at most %d MiB in the first half, %d MiB in the second",
		l.written(), long, stored, most[0]>>10, most[1]>>10)
	if int(stored) < l.written() {
		t.Errorf("%v of %d lines are in the journal", stored, l.written())
	}
	if most[1] > most[0]+most[0]/4+16<<10 {
		t.Errorf("memory grew from %d KiB to %d KiB", most[0], most[1])
	}
	endpoint.set(nil)
	eventually(t, "every line arrives", func() error {
		if n := endpoint.count(); n < l.written() {
			return fmt.Errorf("%d of %d", n, l.written())
		}
		return nil
	})
	if n := endpoint.count(); n != l.written() {
		t.Errorf("%d lines arrived, %d were written", n, l.written())
	}
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// residentKiB returns the resident memory of a process.
func residentKiB(t *testing.T, weir *weirRun) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", weir.cmd.Process.Pid))
	if err != nil {
		t.Skipf("cannot see the memory of a process here: %v", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLogFullDisk fills the disk of the journal and of the positions while the
// endpoint is dead: weir continues to run and stops reading the files. When there
// is space again, every line arrives.
func TestLogFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot make a small file system here: %v: %s", err, out)
	}
	l := startLines(t, logfiles.Options{Files: 4, Seed: 11})
	endpoint := startPushRecorder(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "config.alloy"), l.source("loki.write.out.receiver")+lokiWrite(endpoint.endpoint()))
	p := start(t, "unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" run --server.http.listen-addr=127.0.0.1:0 --storage.path="$1" "$3"`,
		"sh", data, env(t, "WEIR"), filepath.Join(dir, "config.alloy"))
	weir := &weirRun{process: p, url: p.await(1, pageLine)}
	l.add(100)
	endpoint.whole(t, l)
	endpoint.set(dead)
	l.flow(100)
	eventually(t, "the disk is full", func() error {
		if counterOf(t, metricsPage(t, weir), lokiSourceID, "weir_source_file_refused_batches_total", "") == 0 {
			return errors.New("nothing was refused")
		}
		return nil
	})
	from := l.written()
	eventually(t, "more is written", func() error { return l.atLeast(from + 20000) })
	l.rotate(0, logfiles.Rename, 10)
	endpoint.set(nil)
	eventually(t, "more is written", func() error { return l.atLeast(from + 30000) })
	l.pause()
	endpoint.whole(t, l)
	noneDropped(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
