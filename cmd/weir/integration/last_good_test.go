//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// largeConfig writes a config of some megabytes into dir/conf, so that it takes time to
// keep it. Version n has the node prometheus.echo.n.
func largeConfig(t *testing.T, dir string) (save func(n string)) {
	t.Helper()
	conf := filepath.Join(dir, "conf")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		write(t, filepath.Join(conf, fmt.Sprintf("large%d.alloy", i)), strings.Repeat("// "+strings.Repeat("x", 77)+"\n", 12_000))
	}
	return func(n string) {
		t.Helper()
		write(t, filepath.Join(conf, "next"), fmt.Sprintf("prometheus.echo %q { }\n", n))
		if err := os.Rename(filepath.Join(conf, "next"), filepath.Join(conf, "main.alloy")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKillWhileTheConfigIsKept kills weir while it writes the copy of a config, and then
// starts it with a broken one: the version before or after the save runs.
func TestKillWhileTheConfigIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unfinished := filepath.Join(dir, "data", "last-good-config.tmp")
	save := largeConfig(t, dir)
	version := func(weir *weirRun) (string, string) {
		t.Helper()
		var status struct {
			ConfigError string `json:"config_error"`
			Components  []struct{ ID string }
		}
		if err := json.Unmarshal([]byte(weir.request("/api/v0/status")), &status); err != nil || len(status.Components) != 1 {
			t.Fatalf("got %+v and error %v", status, err)
		}
		return strings.TrimPrefix(status.Components[0].ID, "prometheus.echo."), status.ConfigError
	}
	half := 0
	for round := range 10 {
		before, after := fmt.Sprintf("v%da", round), fmt.Sprintf("v%db", round)
		save(before)
		weir := startWeirAt(t, dir, "conf")
		if code := weir.stop(); code != 0 { // the copy is complete
			t.Fatalf("exit status %d after SIGTERM", code)
		}
		weir = startWeirAt(t, dir, "conf")
		save(after)
		for _, err := os.Stat(unfinished); err != nil; _, err = os.Stat(unfinished) {
			select {
			case <-weir.done:
				t.Fatal("weir ended by itself")
			default:
			}
		}
		weir.kill()
		if _, err := os.Stat(unfinished); err == nil {
			half++
		}

		write(t, filepath.Join(dir, "conf", "main.alloy"), "prometheus.echo \"broken\" {")
		weir = startWeirAt(t, dir, "conf")
		got, mistake := version(weir)
		if !slices.Contains([]string{before, after}, got) || !strings.Contains(mistake, "block prometheus.echo.broken is not closed") {
			t.Errorf("version %s runs, want %s or %s; the error of the config is %q", got, before, after, mistake)
		}
		if code := weir.stop(); code != 0 {
			t.Errorf("exit status %d after SIGTERM", code)
		}
	}
	t.Logf("%d of 10 kills left half a copy", half)
	if half == 0 {
		t.Error("no kill came while the copy was written")
	}
}

// TestConfigLargerThanTheDisk runs a config of which the storage directory cannot keep a
// copy: weir reports that, and works.
func TestConfigLargerThanTheDisk(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot make a small file system here: %v: %s", err, out)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	largeConfig(t, dir)("a")
	p := start(t, "unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=3m tmpfs "$1" && exec "$2" run --server.http.listen-addr=127.0.0.1:0 --storage.path="$1" "$3"`,
		"sh", data, env(t, "WEIR"), filepath.Join(dir, "conf"))
	url := p.await(1, pageLine)
	p.await(1, `level=warn msg="cannot keep the config: a start with a broken config cannot fall back on it" err=".*no space left on device"`)
	resp, err := http.Get(url + "/-/ready")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("weir is not ready: %s", resp.Status)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
