package discovery_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// TestRereads: a changed file that the discoverer reads again by itself is no reason for a
// new discoverer.
func TestRereads(t *testing.T) { synctest.Test(t, testRereads) }

func testRereads(t *testing.T) {
	dir := t.TempDir()
	needing, rereads := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(needing, "1")
	write(rereads, "1")
	started := make(chan struct{}, 10)
	run := func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		started <- struct{}{}
		up <- one("a", "a:1")
		<-ctx.Done()
	}
	n := componenttest.New(t, "discovery.script.default")
	c, err := discovery.New(n.Options(), discovery.Kind{
		Config:  func(any) (sd.Config, error) { return script{run: run}, nil },
		Files:   func(any) []string { return []string{needing} },
		Rereads: func(any) []string { return []string{rereads} },
	}, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Run(t, c)
	synctest.Wait()
	if diff := cmp.Diff([]string{needing, rereads}, c.Sourced()); diff != "" {
		t.Errorf("sourced (-want +got):\n%s", diff)
	}
	f := func(args string, want int) {
		t.Helper()
		if err := c.Update(args); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(started) != want {
			t.Errorf("%d discoverers were started, want %d", len(started), want)
		}
	}
	f("x", 1)
	write(rereads, "2")
	f("x", 1)
	write(needing, "2")
	f("x", 2)
	f("y", 3)
}
