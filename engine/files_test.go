package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// TestLinger: what a source has in its hands when it gets another forward_to
// is still accepted by the node that was removed.
func TestLinger(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start("test.usource \"a\" {\n forward_to = [test.sink.b.receiver]\n}\ntest.sink \"b\" { }")
		_, before := l.fake("test.usource.a").get()
		if err := l.reload("test.usource \"a\" {\n forward_to = [test.sink.c.receiver]\n}\ntest.sink \"c\" { }"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := before.SendMetrics(context.Background(), samples(1)); err != nil {
			t.Errorf("the removed node refused: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := before.SendMetrics(context.Background(), samples(1)); !errors.Is(err, flow.ErrStopped) {
			t.Errorf("got %v, want that the node is stopped", err)
		}
	})
}

// TestCallBack: a node that is added again before it has stopped is the same
// node, for its earlier and its new senders.
func TestCallBack(t *testing.T) {
	bubble(t, func(l *harness) {
		with := "test.usource \"a\" {\n forward_to = [test.sink.b.receiver]\n}\ntest.sink \"b\" { }"
		without := "test.usource \"a\" {\n forward_to = [test.sink.c.receiver]\n}\ntest.sink \"c\" { }"
		l.start(with)
		b := l.fake("test.sink.b")
		_, before := l.fake("test.usource.a").get()
		for range 3 {
			for _, config := range []string{without, with} {
				if err := l.reload(config); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, out := l.fake("test.usource.a").get()
				for _, o := range []*flow.Output{before, out} {
					if err := o.SendMetrics(context.Background(), samples(1)); err != nil {
						t.Error(err)
					}
				}
				if waited := time.Since(start); waited > 0 {
					t.Errorf("the samples waited for %s", waited)
				}
				time.Sleep(500 * time.Millisecond)
			}
		}
		if l.fake("test.sink.b") != b {
			t.Error("the node was built again")
		}
		time.Sleep(10 * time.Second)
		_, out := l.fake("test.usource.a").get()
		if err := out.SendMetrics(context.Background(), samples(1)); err != nil {
			t.Errorf("the node that came back is gone: %v", err)
		}
		if err := l.reload(without); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := before.SendMetrics(context.Background(), samples(1)); !errors.Is(err, flow.ErrStopped) {
			t.Errorf("got %v, want that the node is stopped", err)
		}
	})
}

// TestSourced: a component that reads files gets its arguments again when one
// of them changed.
func TestSourced(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(`
test.uvalue "a" {
  value = "/etc/a"
}
test.uvalue "b" {
  value = "/etc/b"
}`)
		l.takeEvents()
		if err := l.e.FilesChanged(context.Background(), []string{"/etc/b"}); err != nil {
			t.Fatal(err)
		}
		l.wantEvents("update test.uvalue.b")
		l.onUpdate = func(string, *arguments) error { return errors.New("cannot read it") }
		if err := l.e.FilesChanged(context.Background(), []string{"/etc/b"}); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.uvalue.b", component.Unhealthy, "cannot read its files again: cannot read it")
		l.onUpdate = nil
		if err := l.e.FilesChanged(context.Background(), []string{"/etc"}); err != nil {
			t.Fatal(err)
		}
		l.takeEvents()
		l.wantHealth("test.uvalue.b", component.Healthy, "")
	})
}

// TestSourcedPattern: a component may read all files of a directory whose names
// match.
func TestSourcedPattern(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(`
test.uvalue "a" {
  value = "/etc/targets/*.json"
}`)
		l.takeEvents()
		changed := func(path, want string) {
			t.Helper()
			if err := l.e.FilesChanged(context.Background(), []string{path}); err != nil {
				t.Fatal(err)
			}
			l.wantEvents(want)
		}
		changed("/etc/targets/a.json", "update test.uvalue.a")
		changed("/etc/targets/a.yaml", "")
		changed("/etc/targets/deep/a.json", "")
		changed("/etc/other/a.json", "")
	})
}

// TestSourcedStaysFailed: files that could not be read again are tried again at
// the next change of anything, and until then the node reports it.
func TestSourcedStaysFailed(t *testing.T) {
	bubble(t, func(l *harness) {
		const config = `
test.uvalue "a" {
  value = "/etc/a"
}`
		l.start(config)
		l.onUpdate = func(string, *arguments) error { return errors.New("cannot read it") }
		if err := l.e.FilesChanged(context.Background(), []string{"/etc/a"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.reload(config); err != nil {
				t.Fatal(err)
			}
			l.wantHealth("test.uvalue.a", component.Unhealthy, "cannot read its files again: cannot read it")
		}
		l.onUpdate = nil
		if err := l.reload(config); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.uvalue.a", component.Healthy, "")
	})
}

// TestSourcedBesideAnotherFailure: a changed file does not make a node forget
// that it runs with other arguments than the config has.
func TestSourcedBesideAnotherFailure(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start("test.uvalue \"a\" {\n value = \"/etc/a\"\n}")
		broken := true
		l.onUpdate = func(_ string, a *arguments) error {
			if a.Value == "/etc/b" && broken {
				return errors.New("there is no b")
			}
			return nil
		}
		if err := l.reload("test.uvalue \"a\" {\n value = \"/etc/b\"\n}"); err != nil {
			t.Fatal(err)
		}
		changed := func() {
			t.Helper()
			if err := l.e.FilesChanged(context.Background(), []string{"/etc/a"}); err != nil {
				t.Fatal(err)
			}
		}
		changed()
		l.wantHealth("test.uvalue.a", component.Unhealthy, "there is no b")
		broken = false
		changed()
		l.wantHealth("test.uvalue.a", component.Healthy, "")
		if a, _ := l.fake("test.uvalue.a").get(); a.Value != "/etc/b" {
			t.Errorf("it runs with %q", a.Value)
		}
	})
}

// TestConfigChanged: the config's file is a file as others are, and saving it
// as it was says nothing.
func TestConfigChanged(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(chain)
		save := func(config string) error {
			l.write(config)
			err := l.e.FilesChanged(context.Background(), []string{l.config})
			synctest.Wait()
			return err
		}
		l.takeLines()
		if err := save(chain); err != nil {
			t.Fatal(err)
		}
		l.wantSaid("")
		if err := save(chain + "test.sink \"d\" { }\n"); err != nil {
			t.Fatal(err)
		}
		l.wantSaid("reloaded c.alloy (… ms), 1 of 4 nodes rebuilt")
		if err := save("test.sink \"c\" {"); err == nil {
			t.Fatal("a syntax error was accepted")
		}
		if got := l.takeLines(); !strings.HasPrefix(got, "cannot reload c.alloy: c.alloy:1:") || !strings.HasSuffix(got, "; nothing was changed\n  1 | test.sink \"c\" {") {
			t.Errorf("announced %s", got)
		}
		if o := l.e.Overview(); o.Reload.Outcome != "refused" || !strings.Contains(o.Reload.Message, "c.alloy:1:") {
			t.Errorf("the overview has %+v", o.Reload)
		}
		// Once said is enough, until it is good again.
		if err := save("test.sink \"c\" {"); err == nil {
			t.Fatal("a syntax error was accepted")
		}
		l.wantSaid("")
		if err := save(chain + "test.sink \"d\" { }\n"); err != nil {
			t.Fatal(err)
		}
		l.wantSaid("reloaded c.alloy (… ms), 0 of 4 nodes rebuilt")
	})
}

// TestScriptsWhileRefused: a config that was refused does not keep saves of
// scripts from being served, and is taken once it can be.
func TestScriptsWhileRefused(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(chain)
		if err := l.reload(chain + "test.late \"x\" { }\n"); err == nil {
			t.Fatal("an unknown component was accepted")
		}
		if got := value(t, l.registry, "weir_engine_config_current", ""); got != 0 {
			t.Errorf("the config is current: %v", got)
		}
		l.takeLines()
		l.saved("version test.pass 2")
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantSaid("reloaded test.pass (… ms), 1 of 3 nodes rebuilt")
		if got := l.e.Overview().Reload.Message; !strings.HasSuffix(got, "the config file was refused and is not what runs") {
			t.Errorf("the overview says %q", got)
		}
		l.saved("version test.late 1")
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantSaid("reloaded c.alloy (… ms), 1 of 4 nodes rebuilt")
		if got := value(t, l.registry, "weir_engine_config_current", ""); got != 1 {
			t.Errorf("the config is not current: %v", got)
		}
	})
}

// TestBrokenSaidOnce: a node that stays on its last good version logs that
// once, whatever else is reloaded.
func TestBrokenSaidOnce(t *testing.T) {
	bubble(t, func(l *harness) {
		var log strings.Builder // written by one goroutine, read when it waits
		l.options.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		l.start(chain)
		l.saved("break test.pass scripts/test/pass.lua:1: no")
		for range 3 {
			if err := l.changed(); err != nil {
				t.Fatal(err)
			}
			if err := l.e.Reload(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), "cannot build the new version, the last good one keeps running"); n != 1 {
			t.Errorf("it was logged %d times:\n%s", n, log.String())
		}
		if strings.Contains(log.String(), "node recovered") {
			t.Errorf("it came back in between:\n%s", log.String())
		}
	})
}

// TestCollision: a script must not have the name of what is built in. At start
// that refuses the config; a save costs that node its health only.
func TestCollision(t *testing.T) {
	bubble(t, func(l *harness) {
		scripts := &catalog{l: l, regs: map[string]component.Registration{}}
		l.options.Catalogs = []component.Catalog{scripts}
		l.start(chain)
		l.takeEvents()
		script := filepath.Join(l.dir, "pass.lua")
		if err := os.WriteFile(script, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		scripts.add(component.Registration{Name: "test.pass", Version: "1", Sources: []string{script, script + "x"}})
		want := "component test.pass is built in and also a script (" + script + ")"
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.pass.b", component.Unhealthy, want)
		l.wantEvents("")
		if err := l.e.Reload(context.Background()); err == nil || !strings.Contains(err.Error(), "c.alloy:5:1: "+want+" (rename the script)") {
			t.Errorf("got %v", err)
		}
		scripts.remove("test.pass")
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.pass.b", component.Healthy, "")
		l.wantEvents("")
	})
}

// TestWatch saves real files.
func TestWatch(t *testing.T) {
	l := newHarness(t)
	scripts := filepath.Join(l.dir, "scripts")
	if err := os.Mkdir(scripts, 0o755); err != nil {
		t.Fatal(err)
	}
	l.catalog.roots = []string{scripts}
	lines := make(chan string, 100)
	l.write(chain)
	e, err := engine.New(engine.Options{
		Catalogs: []component.Catalog{l.catalog}, StoragePath: l.dir, WatchConfig: true,
		Announce: func(line string) { lines <- durations.ReplaceAllString(line, "(… ms)") },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, l.config) }()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-lines:
			if got != want {
				t.Fatalf("announced %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing was announced, want %q", want)
		}
	}
	next("started c.alloy (… ms), 3 nodes")
	l.write(chain + "test.sink \"d\" { }\n")
	next("reloaded c.alloy (… ms), 1 of 4 nodes rebuilt")
	l.saved("version test.pass 2")
	replace(t, filepath.Join(scripts, "pass.lua"), []byte("return 2"))
	next("reloaded test.pass (… ms), 1 of 4 nodes rebuilt")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestImportComesBack: an import whose directory goes is what it was, and
// follows the directory that comes in its place, also a link to another.
func TestImportComesBack(t *testing.T) {
	f := func(detector string) {
		t.Run(detector, func(t *testing.T) {
			l := newHarness(t)
			l.watch = true
			values, gone := make(chan string, 10), make(chan bool, 10)
			l.onSaid = func(line string) {
				if strings.Contains(line, "no such file") {
					gone <- true
				}
			}
			l.onUpdate = func(_ string, a *arguments) error { values <- a.Value; return nil }
			for _, dir := range []string{"1", "2", "3"} {
				l.save(filepath.Join("versions", dir, "p.alloy"), []byte(strings.Replace(passModule, "VALUE", dir, 1)))
			}
			mods := filepath.Join(l.dir, "mods")
			link := func(version string) {
				t.Helper()
				next := filepath.Join(l.dir, "next")
				if err := errors.Join(os.Symlink(filepath.Join("versions", version), next), os.Rename(next, mods)); err != nil {
					t.Fatal(err)
				}
			}
			want := func(value string) {
				t.Helper()
				select {
				case got := <-values:
					if got != value {
						t.Fatalf("got %s, want %s", got, value)
					}
				case <-time.After(time.Minute):
					t.Fatalf("version %s never came", value)
				}
			}
			link("1")
			l.onBuild = func(_ string, a *arguments, _ component.Options) error {
				link("2") // it has been read, and is not watched yet
				values <- a.Value
				return nil
			}
			l.run("import.file \"m\" {\n  filename = \"mods\"\n" + detector + "}\nm.p \"x\" { }\n")
			defer l.end()
			want("1")
			want("2")
			link("1")
			want("1")
			if err := os.Remove(mods); err != nil {
				t.Fatal(err)
			}
			select {
			case <-gone:
			case <-time.After(time.Minute):
				t.Fatal("that it has gone was not seen")
			}
			l.wantHealth("import.file.m", component.Unhealthy, "no such file or directory")
			link("3")
			want("3")
		})
	}
	f("")
	f("  detector = \"poll\"\n  poll_frequency = \"50ms\"\n")
}

// TestPolledImportRefuses: a config that was refused for an import that is
// polled is taken when that is right, before anybody polls it.
func TestPolledImportRefuses(t *testing.T) {
	l := newHarness(t)
	l.watch = true
	said, values := make(chan string, 10), make(chan string, 10)
	l.onSaid = func(line string) { said <- line }
	l.onBuild = func(_ string, a *arguments, _ component.Options) error { values <- a.Value; return nil }
	l.run("test.source \"a\" {\n  value = \"1\"\n}\n")
	defer l.end()
	l.save("m.alloy", []byte("declare \"p\" {\n"))
	<-values
	<-said
	l.write("import.file \"m\" {\n  filename = \"m.alloy\"\n  detector = \"poll\"\n}\nm.p \"x\" { }\n")
	if line := <-said; !strings.Contains(line, "nothing was changed") {
		t.Fatalf("announced %s", line)
	}
	l.save("m.alloy", []byte(strings.Replace(passModule, "VALUE", "2", 1)))
	select {
	case <-values:
	case <-time.After(time.Minute):
		t.Error("the import is right, and the config is still refused")
	}
}
