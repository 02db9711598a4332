package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

const passModule = "declare \"p\" {\n  test.upass \"x\" {\n    value = \"VALUE\"\n  }\n}\n"

// TestImportPoll: detector "poll" looks in intervals, and at nothing between.
func TestImportPoll(t *testing.T) {
	l := newHarness(t)
	clk := clocktest.New(time.Unix(1_700_000_000, 0))
	l.options.Clock = clk
	updated := make(chan string, 10)
	l.onUpdate = func(_ string, a *arguments) error { updated <- a.Value; return nil }
	l.onBuild = func(_ string, a *arguments, _ component.Options) error { updated <- a.Value; return nil }
	file := l.save("m.alloy", []byte(strings.Replace(passModule, "VALUE", "1", 1)))
	l.watch = true
	l.run("import.file \"m\" {\n  filename = \"m.alloy\"\n  detector = \"poll\"\n  poll_frequency = \"10s\"\n}\nm.p \"x\" { }\n")
	defer l.end()
	if got := <-updated; got != "1" {
		t.Fatalf("built with %q", got)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(passModule, "VALUE", "2", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for {
		if err := clk.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		clk.Advance(10 * time.Second)
		select {
		case got := <-updated:
			if got != "2" {
				t.Errorf("updated with %q", got)
			}
			return
		default:
		}
	}
}

// TestForeachMetrics: the nodes of a foreach show metrics if enable_metrics is true.
func TestForeachMetrics(t *testing.T) {
	bubble(t, func(l *harness) {
		config := "foreach \"l\" {\n  collection = [\"a\"]\n  var = \"each\"\n  enable_metrics = ENABLE\n  template {\n    test.upass \"p\" { }\n  }\n}\n"
		shown := func() bool {
			fams, err := l.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fams {
				for _, m := range f.Metric {
					for _, lp := range m.Label {
						if lp.GetName() == "component_id" && lp.GetValue() == "foreach.l/foreach_a_1/test.upass.p" {
							return true
						}
					}
				}
			}
			return false
		}
		l.onBuild = func(_ string, _ *arguments, o component.Options) error {
			return o.Registerer.Register(prometheus.NewCounter(prometheus.CounterOpts{Name: "own_total"}))
		}
		l.start(strings.Replace(config, "ENABLE", "false", 1))
		if shown() {
			t.Error("metrics are shown without enable_metrics")
		}
		l.takeEvents()
		if err := l.reload(strings.Replace(config, "ENABLE", "true", 1)); err != nil {
			t.Fatal(err)
		}
		if !shown() {
			t.Error("no metrics with enable_metrics")
		}
		l.wantEvents("")
	})
}

// TestModuleSecrets: a secret goes through an argument and an item as one, and
// no ID is made of it.
func TestModuleSecrets(t *testing.T) {
	bubble(t, func(l *harness) {
		l.catalog.add(component.Registration{Name: "test.secret", Exports: secretExports{}})
		l.onBuild = func(id string, _ *arguments, o component.Options) error {
			if strings.HasPrefix(id, "test.secret.") {
				o.Export(secretExports{Value: "hunter2"})
			}
			return nil
		}
		l.start(`
test.secret "s" { }
declare "d" {
  argument "password" { }
  export "password" {
    value = argument.password.value
  }
}
d "x" {
  password = test.secret.s.value
}
foreach "named" {
  collection = [{ name = "a", password = test.secret.s.value }]
  var = "each"
  id = "name"
  template {
    test.upass "p" { }
  }
}
`)
		if got := config.Redact(l.info("d.x").Arguments); strings.Contains(fmt.Sprint(got), "hunter2") || !strings.Contains(fmt.Sprint(got), "(secret)") {
			t.Errorf("arguments are shown as %v", got)
		}
		l.info("foreach.named/foreach_a_1/test.upass.p")
		f := func(collection, id, want string) {
			t.Helper()
			err := l.reload("test.secret \"s\" { }\nforeach \"l\" {\n  collection = " + collection + "\n  var = \"each\"\n  id = \"" + id + "\"\n  template {\n    test.upass \"p\" { }\n  }\n}\n")
			if err != nil {
				t.Fatalf("what a node exports refuses the config: %v", err)
			}
			l.wantHealth("foreach.l", component.Unhealthy, want)
		}
		f("[test.secret.s.value]", "", "3:16: collection: item 0 has a secret in it, of which no name can be made: let id say which field tells the items apart")
		f("[1, {a = test.secret.s.value}]", "", "item 1 has a secret in it")
		f("[{a = test.secret.s.value}]", "a", "item 0 has an a that has a secret in it")
	})
}

// TestDataPath: a node inside of a module has a directory of its own inside of
// the storage path.
func TestDataPath(t *testing.T) {
	bubble(t, func(l *harness) {
		paths := map[string]string{}
		l.onBuild = func(id string, _ *arguments, o component.Options) error { paths[id] = o.DataPath; return nil }
		l.start("foreach \"l\" {\n  collection = [\"../../x\", \"/\", \"\"]\n  var = \"each\"\n  template {\n    test.upass \"p\" { }\n  }\n}\n")
		seen := map[string]bool{}
		for id, path := range paths {
			rel, err := filepath.Rel(l.dir, path)
			if err != nil || !filepath.IsLocal(rel) || seen[path] || strings.Count(rel, string(filepath.Separator)) != 2 {
				t.Errorf("%s keeps its files in %s", id, path)
			}
			seen[path] = true
		}
		if len(seen) != 3 {
			t.Errorf("got %d directories for 3 items: %v", len(seen), paths)
		}
	})
}

// TestForeachFollowsRuns: a collection that is exported while the graph runs is
// followed without a reload.
func TestForeachFollowsRuns(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start("test.value \"v\" { }\nforeach \"l\" {\n  collection = string.split(test.value.v.value, \",\")\n  var = \"each\"\n  template {\n    test.upass \"p\" {\n      value = each\n    }\n  }\n}\n")
		l.takeEvents()
		export := l.fake("test.value.v").o.Export
		export(valueExports{Value: "a,b"})
		synctest.Wait()
		if got := ordered(l.takeEvents()); !strings.HasPrefix(got, "build foreach.l/foreach_a_1/test.upass.p\nbuild foreach.l/foreach_b_1/test.upass.p\n") {
			t.Errorf("got events\n%s", got)
		}
		export(valueExports{Value: "b,a"})
		synctest.Wait()
		l.wantEvents("")
		if err := l.e.Reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		l.wantEvents("")
		export(valueExports{Value: "b"})
		synctest.Wait()
		l.wantEvents("stop foreach.l/foreach_a_1/test.upass.p")
	})
}

// TestModulesLeakNothing reloads modules a thousand times, in other ways each
// time: declares and imports come and go, items come and go.
func TestModulesLeakNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	bubble(t, func(l *harness) {
		l.options.Logger = slog.New(slog.DiscardHandler) // the test would keep it all
		l.save("m.alloy", []byte(strings.Replace(passModule, "VALUE", "1", 1)))
		const loop = "test.uvalue \"v\" { }\nforeach \"l\" {\n  collection = string.split(test.uvalue.v.value, \",\")\n  var = \"each\"\n  template {\n    test.upass \"p\" {\n      value = each\n    }\n  }\n}\n"
		configs := []string{
			loop + "import.file \"m\" {\n  filename = \"m.alloy\"\n}\nm.p \"x\" { }\nimport.string \"s\" {\n  content = \"declare \\\"q\\\" { }\"\n}\ns.q \"y\" { }\n",
			loop + "declare \"d\" {\n  argument \"n\" { }\n  test.upass \"in\" {\n    number = argument.n.value\n  }\n  export \"out\" {\n    value = test.upass.in.receiver\n  }\n}\nd \"a\" {\n  n = 1\n}\ntest.upass \"z\" {\n  forward_to = [d.a.out]\n}\n",
			loop + "import.file \"m\" {\n  filename = \"m.alloy\"\n  detector = \"poll\"\n}\nm.p \"x\" { }\n",
		}
		l.start(configs[0])
		n := 0
		round := func() {
			n++
			if err := l.reload(configs[n%len(configs)]); err != nil {
				t.Fatal(err)
			}
			l.fake("test.uvalue.v").o.Export(valueExports{Value: fmt.Sprintf("%d,%d", n%5, n%7)})
			l.save("m.alloy", []byte(strings.Replace(passModule, "VALUE", fmt.Sprint(n), 1)))
			if err := l.e.FilesChanged(context.Background(), []string{filepath.Join(l.dir, "m.alloy")}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			l.takeEvents()
			l.takeLines()
		}
		measure := func() (goroutines int, heap uint64) {
			for range 210 {
				round()
			}
			time.Sleep(10 * time.Second) // the bubble's
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), m.HeapAlloc
		}
		goroutines, heap := measure()
		for range 4 {
			goroutines2, heap2 := measure()
			if goroutines2 > goroutines+10 { // some may be about to end
				t.Errorf("%d goroutines before, %d after", goroutines, goroutines2)
			}
			if heap2 > heap+512<<10 {
				t.Errorf("%d bytes of heap before, %d after", heap, heap2)
			}
		}
	})
}

// Imports returns the imports of files and folders, including those of imported
// modules, with their paths relative to the file that contains them.
func TestImports(t *testing.T) {
	l := newHarness(t)
	l.write(`import.file "a" { filename = "sub/a.alloy" }
import.string "s" { content = "declare \"x\" { }" }
`)
	sub := filepath.Join(l.dir, "sub")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.alloy": `import.file "b" { filename = "b.alloy" }`, "b.alloy": `declare "y" { }`} {
		if err := os.WriteFile(filepath.Join(sub, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, _, ds := l.newEngine().Imports(l.config)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	want := []engine.Import{
		{ID: "import.file.a", Position: l.config + ":1", Path: filepath.Join(sub, "a.alloy")},
		{ID: "import.file.a/import.file.b", Position: filepath.Join(sub, "a.alloy") + ":1", Path: filepath.Join(sub, "b.alloy")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
