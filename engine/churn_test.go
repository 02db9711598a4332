package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
)

const churnConfig = `
test.value "c" { }
foreach "f" {
  collection = encoding.from_json(test.value.c.value)
  var        = "each"
  template {
    test.source "s" {
      value = each
    }
  }
}`

// collection is a JSON list of n items of a round.
func collection(round, n int) valueExports {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`"r%d_%d"`, round, i)
	}
	return valueExports{Value: "[" + strings.Join(items, ",") + "]"}
}

// census counts the components of a foreach that run.
type census struct {
	mu        sync.Mutex
	now, most int
	total     int
}

func (c *census) add(d int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now += d; d > 0 {
		c.total++
	}
	c.most = max(c.most, c.now)
}

func (c *census) counts() (now, most, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.most, c.total
}

// A collection that is another one before its nodes are built: removed nodes stop
// as fast as others are made, and in the end there are those of the newest.
func TestForeachChangesFast(t *testing.T) {
	const rounds, items = 120, 50
	bubble(t, func(l *harness) {
		var c census
		var source *fake
		round := 0
		l.onBuild = func(id string, a *arguments, o component.Options) error {
			if a.Value == fmt.Sprintf("r%d_0", round) && round < rounds {
				round++
				source.o.Export(collection(round, items))
			}
			return nil
		}
		l.onRun = func(ctx context.Context, f *fake) error {
			if strings.HasPrefix(f.id, "foreach") {
				c.add(1)
				<-ctx.Done()
				c.add(-1)
			}
			return nil
		}
		l.start(strings.Replace(churnConfig, `"c" { }`, `"c" { value = "[]" }`, 1))
		source = l.fake("test.value.c")
		source.o.Export(collection(0, items))
		synctest.Wait()
		if round != rounds {
			t.Fatalf("%d rounds were followed, want %d", round, rounds)
		}
		now, most, total := c.counts()
		if now != items || most > 1000+3*items {
			t.Errorf("%d components run in the end, at most %d of %d did at once; want %d and no more than about 1000", now, most, total, items)
		}
		l.wantMetric("weir_engine_nodes_removing 0")
		l.wantHealth("foreach.f", component.Unhealthy, "it changes faster than its nodes can be built")
		l.wantMetric(`weir_component_unhealthy_since_timestamp_seconds{component_id="foreach.f",reason="changes_too_fast"}`)
		time.Sleep(10 * time.Second)
		l.wantProblem("foreach.f", "", "", time.Time{})

		// Of exports that come before anybody has looked, the newest counts.
		for i := range 1000 {
			source.o.Export(collection(rounds+1+i, items))
		}
		synctest.Wait()
		if id := fmt.Sprintf("foreach.f/foreach_r%d_0_1/test.source.s", rounds+1000); l.info(id).Health.State != component.Healthy {
			t.Errorf("%s does not run", id)
		}
		l.wantMetric("!weir_engine_exports_coalesced_total 0")
	})
}

// Removed nodes that do not stop hold up the next collections, and all are reported.
func TestForeachNodesDoNotStop(t *testing.T) {
	const items = 600
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.onRun = func(ctx context.Context, f *fake) error {
			if <-ctx.Done(); strings.HasPrefix(f.id, "foreach") {
				<-hang
			}
			return nil
		}
		l.start(strings.Replace(churnConfig, `"c" { }`, `"c" { value = "[]" }`, 1))
		source := l.fake("test.value.c")
		for round := range 6 {
			source.o.Export(collection(round, items))
			synctest.Wait()
		}
		node := func(round int) string { return fmt.Sprintf("foreach.f/foreach_r%d_0_1/test.source.s", round) }
		l.info(node(2)) // which removed those of the second, and so 1200 stop
		l.wantMetric("weir_engine_nodes_removing 1200")
		l.wantHealth("foreach.f", component.Unhealthy, "it has changed, but more than 1000 nodes that were removed have not stopped")
		time.Sleep(time.Minute)
		l.wantHealth("foreach.f", component.Unhealthy, "it has changed, but more than 1000 nodes that were removed have not stopped")
		l.wantMetric("weir_engine_nodes_abandoned 1200")
		if s := l.e.Overview().Stalled; len(s) != 11 || !strings.Contains(s[0], "was removed and has not stopped: stop has not returned since 2000") || s[10] != "1190 more removed nodes have not stopped" {
			t.Errorf("the engine says %q", s)
		}
		close(hang)
		synctest.Wait()
		l.info(node(5)) // and none of those between
		time.Sleep(10 * time.Second)
		l.wantProblem("foreach.f", "", "", time.Time{})
		l.wantMetric("weir_engine_nodes_abandoned 0")
		l.wantMetric("weir_engine_nodes_removing 0")
	})
}

// Run of a version is not called while any version before it has not returned,
// also if the one in between never ran.
func TestVersionsWaitForAllBefore(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.onRun = func(ctx context.Context, f *fake) error {
			<-ctx.Done()
			if a, _ := f.get(); a.Value == "1" {
				<-hang
			}
			return nil
		}
		config := func(v int) string { return fmt.Sprintf("test.source \"a\" {\n  value = \"%d\"\n}", v) }
		l.start(config(1))
		for v := 2; v <= 4; v++ {
			if err := l.reload(config(v)); err != nil {
				t.Fatal(err)
			}
		}
		l.wantEvents("build test.source.a\nrun test.source.a\nbuild test.source.a\nbuild test.source.a\nbuild test.source.a")
		close(hang)
		synctest.Wait()
		l.wantEvents("replaced test.source.a\nrun test.source.a")
	})
}

// Versions that never return are not piled up.
func TestVersionsDoNotReturn(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.onRun = func(ctx context.Context, _ *fake) error {
			<-ctx.Done()
			<-hang
			return nil
		}
		config := func(v int) string { return fmt.Sprintf("test.pass \"a\" {\n  value = \"%d\"\n}", v) }
		l.start(config(0))
		for v := range 30 {
			if err := l.reload(config(v)); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(l.takeEvents(), "run test.pass.a"); got != 12 {
			t.Errorf("%d versions ran, want 12", got)
		}
		l.wantHealth("test.pass.a", component.Unhealthy, "11 earlier versions of this component have not stopped")
		close(hang)
		time.Sleep(2 * time.Minute) // it is tried again
		l.wantProblem("test.pass.a", "", "", time.Time{})
		if a, _ := l.fake("test.pass.a").get(); a.Value != "29" {
			t.Errorf("version %s runs", a.Value)
		}
	})
}

// When weir stops, what a node that was just removed still sends is accepted: what
// it sends to stops after it.
func TestStopWaitsForRemovedNodes(t *testing.T) {
	bubble(t, func(l *harness) {
		l.onRun = func(ctx context.Context, f *fake) error {
			if <-ctx.Done(); f.id == "test.source.a" {
				time.Sleep(time.Second) // it ends what it has begun
				_, out := f.get()
				if err := out.SendMetrics(context.WithoutCancel(ctx), samples(3)); err != nil {
					t.Errorf("the last batch was not accepted: %v", err)
				}
			}
			return nil
		}
		l.start(chain)
		if err := l.reload(strings.Replace(chain, "test.source \"a\" {", "test.source \"b\" {", 1)); err != nil {
			t.Fatal(err)
		}
		if err := l.end(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}
