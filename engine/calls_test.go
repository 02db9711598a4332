package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/engine/service"
)

// reads has builds and updates with the value "read" read a file that hangs. It
// returns how many of these reads have returned.
func (l *harness) reads() (returned *atomic.Int64, release func()) {
	l.t.Helper()
	dir := filepath.Join(l.dir, "dead")
	if err := os.Mkdir(dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	_, release = filestest.Hang(l.t, dir)
	returned = new(atomic.Int64)
	read := func(_ string, a *arguments) error {
		if !strings.HasPrefix(a.Value, "read") {
			return nil
		}
		_, err := files.Read(path, 1)
		returned.Add(1)
		return err
	}
	l.onBuild = func(id string, a *arguments, _ component.Options) error { return read(id, a) }
	l.onUpdate = read
	return returned, release
}

// TestReloadDuringHang: a build or an update that reads a file which hangs does not
// delay the reload of another node, nor what follows from another node's exports.
func TestReloadDuringHang(t *testing.T) {
	const other = "test.uvalue \"v\" {\n  value = %[1]q\n}\ntest.usource \"w\" {\n  value = test.uvalue.v.value\n}\n"
	f := func(name, before, after string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				returned, release := l.reads()
				l.start(fmt.Sprintf(other, "1") + before)
				first := make(chan error)
				l.write(fmt.Sprintf(other, "1") + after)
				go func() { first <- l.e.Reload(context.Background()) }()
				synctest.Wait()
				if err := l.reload(fmt.Sprintf(other, "2") + after); err != nil {
					t.Fatal(err)
				}
				if a, _ := l.fake("test.usource.w").get(); a.Value != "2" {
					t.Errorf("the value is %q", a.Value)
				}
				if n := returned.Load(); n > 0 {
					t.Errorf("%d reads had returned before the other node was reloaded", n)
				}
				if before != "" {
					l.wantHealth("test.usource.h", component.Healthy, "")
				} else {
					l.wantHealth("test.usource.h", component.Unknown, "build has not returned yet")
				}
				// The caller learns the outcome when it is known.
				if err := <-first; err != nil || returned.Load() == 0 {
					t.Errorf("got %v after %d reads", err, returned.Load())
				}
				l.wantHealth("test.usource.h", component.Unhealthy, "has not returned since")
				release()
				time.Sleep(2 * time.Minute)
				l.wantHealth("test.usource.h", component.Healthy, "")
				if a, _ := l.fake("test.usource.h").get(); a.Value != "read" {
					t.Errorf("the value is %q", a.Value)
				}
			})
		})
	}
	const node = "test.usource \"h\" {\n  value = %q\n%s}\n"
	f("a new node", "", fmt.Sprintf(node, "read", ""))
	f("an update", fmt.Sprintf(node, "1", ""), fmt.Sprintf(node, "read", ""))
	f("a rebuild", fmt.Sprintf(node, "1", "rebuild = true\n"), fmt.Sprintf(node, "read", "rebuild = true\n"))
}

// TestManyHang: calls that hang together delay another node about as long as one.
func TestManyHang(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		l.onBuild = func(_ string, a *arguments, _ component.Options) error {
			if a.Value == "hang" {
				<-hang
			}
			return nil
		}
		l.start("")
		config := ""
		for i := range 50 {
			config += fmt.Sprintf("test.source \"h%d\" {\n  value = \"hang\"\n}\n", i)
		}
		l.write(config)
		go l.e.Reload(context.Background())
		synctest.Wait()
		start := time.Now()
		if err := l.reload(config + "test.source \"a\" { }"); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("the reload of another node took %s", waited)
		}
		l.wantHealth("test.source.a", component.Healthy, "")
		close(hang)
	})
}

// TestLateCall: what happens to a node while a build or an update has not returned
// is done when it has.
func TestLateCall(t *testing.T) {
	var hang chan struct{}
	f := func(name string, then func(l *harness)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				hang = make(chan struct{})
				wait := func(value string) {
					if strings.HasPrefix(value, "hang") {
						<-hang
					}
				}
				l.onBuild = func(_ string, a *arguments, _ component.Options) error { wait(a.Value); return nil }
				l.onUpdate = func(_ string, a *arguments) error { wait(a.Value); return nil }
				l.start("test.value \"v\" {\n  value = \"1\"\n}\ntest.usource \"w\" {\n  value = test.value.v.value\n}\n")
				l.takeEvents()
				l.takeLines()
				l.write("test.value \"v\" {\n  value = \"hang\"\n}\ntest.usource \"w\" {\n  value = test.value.v.value\n}\n")
				go l.e.Reload(context.Background())
				time.Sleep(time.Second)
				then(l)
			})
		})
	}
	value := func(l *harness, want string) {
		l.t.Helper()
		if a, _ := l.fake("test.usource.w").get(); a.Value != want {
			l.t.Errorf("the value is %q, want %q", a.Value, want)
		}
	}
	const config = "test.value \"v\" {\n  value = %q\n}\ntest.usource \"w\" {\n  value = test.value.v.value\n}\n"
	f("it is taken over", func(l *harness) {
		l.wantSaid("reloaded c.alloy (… ms), 0 of 2 nodes rebuilt, 1 in progress")
		value(l, "1")
		close(hang)
		time.Sleep(time.Second)
		value(l, "hang")
		l.wantSaid("reloaded test.value.v (… ms), 1 of 2 nodes rebuilt")
	})
	f("other arguments", func(l *harness) {
		if err := l.reload(fmt.Sprintf(config, "2")); err != nil {
			l.t.Fatal(err)
		}
		value(l, "1")
		close(hang)
		time.Sleep(time.Second)
		value(l, "2")
	})
	f("back to what runs", func(l *harness) {
		if err := l.reload(fmt.Sprintf(config, "1")); err != nil {
			l.t.Fatal(err)
		}
		close(hang)
		time.Sleep(time.Second)
		value(l, "1")
	})
	f("it is removed", func(l *harness) {
		if err := l.reload("test.source \"a\" { }"); err != nil {
			l.t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		l.takeEvents()
		close(hang)
		time.Sleep(time.Minute)
		l.wantEvents("")
		if err := l.reload(fmt.Sprintf(config, "3")); err != nil {
			l.t.Fatal(err)
		}
		value(l, "3")
	})
	f("weir stops", func(l *harness) {
		go func() {
			time.Sleep(3 * time.Second)
			close(hang)
		}()
		if err := l.end(); err != nil {
			l.t.Error(err)
		}
	})
}

// TestCrashDuringLateUpdate: a component that fails while its update has not returned is
// built again with the new arguments.
func TestCrashDuringLateUpdate(t *testing.T) {
	bubble(t, func(l *harness) {
		hang, crash := make(chan struct{}), make(chan struct{})
		l.onUpdate = func(string, *arguments) error { <-hang; return nil }
		l.onRun = func(ctx context.Context, f *fake) error {
			select {
			case <-crash:
				crash = nil
				return errors.New("it fails")
			case <-ctx.Done():
				return nil
			}
		}
		l.start("test.usource \"a\" { }")
		l.takeEvents()
		l.write("test.usource \"a\" {\n  value = \"2\"\n}")
		go l.e.Reload(context.Background())
		time.Sleep(time.Second)
		close(crash)
		time.Sleep(time.Minute)
		l.wantEvents("update test.usource.a\nreturned test.usource.a")
		close(hang)
		time.Sleep(2 * time.Second)
		l.wantEvents("build test.usource.a\nrun test.usource.a")
		if a, _ := l.fake("test.usource.a").get(); a.Value != "2" {
			t.Errorf("the value is %q", a.Value)
		}
		l.wantHealth("test.usource.a", component.Healthy, "")
	})
}

// TestFilesChangeDuringLateUpdate: files that change while they are read are read once
// more.
func TestFilesChangeDuringLateUpdate(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(chan struct{})
		var updates atomic.Int64
		l.onUpdate = func(string, *arguments) error {
			updates.Add(1)
			<-hang
			return nil
		}
		path := filepath.Join(l.dir, "data")
		l.sourced(path)
		l.start("test.usource \"a\" { }")
		for range 3 {
			go l.e.FilesChanged(context.Background(), []string{path})
			time.Sleep(time.Second)
		}
		if n := updates.Load(); n != 1 {
			t.Errorf("%d updates, want 1", n)
		}
		close(hang)
		time.Sleep(time.Second)
		if n := updates.Load(); n != 2 {
			t.Errorf("%d updates, want 2", n)
		}
	})
}

// sourced is a component that reads a file.
type sourced struct {
	updatable
	path string
}

func (s sourced) Sourced() []string { return []string{s.path} }

// sourced makes test.usource read a file.
func (l *harness) sourced(path string) {
	l.wrap(func(c updatable) component.Component { return sourced{c, path} })
}

// wrap has the builds of test.usource return another component.
func (l *harness) wrap(wrapped func(updatable) component.Component) {
	r, _ := l.catalog.Lookup("test.usource")
	build := r.Build
	r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
		c, err := build(o, args, previous)
		if err != nil {
			return nil, err
		}
		return wrapped(c.(updatable)), nil
	}
	l.catalog.regs["test.usource"] = r
}

// TestFileAnswersAgain: a file that changed on a file system that hung is read once that
// answers, although it does not change again.
func TestFileAnswersAgain(t *testing.T) {
	bubble(t, func(l *harness) {
		path := filepath.Join(l.dir, "data")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l.sourced(path)
		l.start("test.usource \"a\" { }")
		_, release := filestest.Hang(t, path)
		l.onUpdate = func(string, *arguments) error { _, err := files.Read(path, 1); return err }
		if err := l.e.FilesChanged(context.Background(), []string{path}); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.usource.a", component.Unhealthy, "has not returned since")
		release()
		time.Sleep(2 * time.Minute)
		l.wantHealth("test.usource.a", component.Healthy, "")
	})
}

// pendingCatalog has test.slow, of which nothing is known until an answer is saved.
type pendingCatalog struct {
	*catalog
	changed func(paths []string)
}

// OnChange notes whom to tell.
func (c *pendingCatalog) OnChange(fn func(paths []string)) { c.changed = fn }

// TestPendingRegistration: while a catalog does not know what a name means, the version
// before keeps running, a new node waits, other nodes are reloaded, and nothing is
// reported. The caller that asked for the change waits for the answer.
func TestPendingRegistration(t *testing.T) {
	const one, both = "test.slow \"a\" { }\ntest.uvalue \"other\" {\n  value = %q\n}\n", "test.slow \"new\" { }\ntest.pass \"p\" {\n  forward_to = [test.slow.new.receiver]\n}\n"
	f := func(name string, next error, want string, health component.HealthState) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				c := &pendingCatalog{catalog: &catalog{l: l, regs: map[string]component.Registration{}}}
				v := triedVersions(l)
				save := func(version string, err error) {
					r := v.version(version, nil)
					r.Name, r.Err = "test.slow", err
					c.mu.Lock()
					defer c.mu.Unlock()
					c.regs[r.Name] = r
				}
				save("1", nil)
				l.options.Catalogs = []component.Catalog{c}
				l.start(fmt.Sprintf(one, "1"))
				l.takeLines()
				answered := make(chan struct{})
				save("2", fmt.Errorf("x.lua: %w", &component.PendingError{Err: errors.New("it takes long"), What: "the compilation of x.lua", Done: answered}))
				saved := make(chan error, 1)
				go func() { saved <- l.e.FilesChanged(context.Background(), []string{"x.lua"}) }()
				synctest.Wait()
				l.wantSaid("")
				if len(saved) > 0 {
					t.Fatal("the caller that saved the file was told before the answer was known")
				}

				reloaded := make(chan error, 1)
				l.write(fmt.Sprintf(one, "2") + both)
				go func() { reloaded <- l.e.Reload(context.Background()) }()
				synctest.Wait()
				if a, _ := l.fake("test.uvalue.other").get(); a.Value != "2" {
					t.Errorf("the other node has value %q", a.Value)
				}
				if got := l.info("test.slow.a").Version; got != "1" {
					t.Errorf("version %s runs, want 1", got)
				}
				l.wantHealth("test.slow.a", component.Healthy, "")
				l.wantHealth("test.slow.new", component.Unknown, "waits for the compilation of x.lua")

				save("2", next)
				c.changed([]string{"x.lua"})
				close(answered)
				for _, c := range []chan error{saved, reloaded} {
					if err := <-c; err != nil {
						t.Error(err)
					}
					if got := l.info("test.slow.a").Version; got != want {
						t.Errorf("version %s runs, want %s", got, want)
					}
				}
				message := ""
				if next != nil {
					message = next.Error()
				}
				l.wantHealth("test.slow.a", health, message)
				l.wantHealth("test.slow.new", health, message)
			})
		})
	}
	f("it compiles", nil, "2", component.Healthy)
	f("it does not", errors.New("x.lua:1: syntax error"), "1", component.Unhealthy)
}

// TestPendingAfterRefusal: while a catalog does not know what the next version is, the
// refusal of the last one is neither forgotten nor reported again.
func TestPendingAfterRefusal(t *testing.T) {
	bubble(t, func(l *harness) {
		c := &pendingCatalog{catalog: &catalog{l: l, regs: map[string]component.Registration{}}}
		v := triedVersions(l)
		save := func(version string, err error) {
			r := v.version(version, nil)
			r.Name, r.Err = "test.slow", err
			c.mu.Lock()
			defer c.mu.Unlock()
			c.regs[r.Name] = r
		}
		save("1", nil)
		l.options.Catalogs = []component.Catalog{c}
		l.start("test.slow \"a\" { }\n")
		refused := errors.New("x.lua:1: syntax error")
		save("2", refused)
		if err := l.e.FilesChanged(context.Background(), []string{"x.lua"}); err != nil {
			t.Error(err)
		}
		l.wantHealth("test.slow.a", component.Unhealthy, refused.Error())
		l.takeLines()
		answered := make(chan struct{})
		save("3", fmt.Errorf("x.lua: %w", &component.PendingError{Err: errors.New("it takes long"), What: "the compilation of x.lua", Done: answered}))
		saved := make(chan error, 1)
		go func() { saved <- l.e.FilesChanged(context.Background(), []string{"x.lua"}) }()
		synctest.Wait()
		l.wantSaid("")
		l.wantHealth("test.slow.a", component.Unhealthy, refused.Error())
		save("3", nil)
		c.changed([]string{"x.lua"})
		close(answered)
		if err := <-saved; err != nil {
			t.Error(err)
		}
		l.wantHealth("test.slow.a", component.Healthy, "")
		if got := l.info("test.slow.a").Version; got != "3" {
			t.Errorf("version %s runs, want 3", got)
		}
	})
}

// TestPendingAtShutdown: a catalog that does not answer does not delay the shutdown.
func TestPendingAtShutdown(t *testing.T) {
	bubble(t, func(l *harness) {
		c := &pendingCatalog{catalog: &catalog{l: l, regs: map[string]component.Registration{}}}
		l.options.Catalogs = []component.Catalog{c}
		l.start("")
		r := triedVersions(l).version("1", nil)
		r.Name, r.Err = "test.slow", &component.PendingError{Err: errors.New("it takes long"), What: "the compilation of x.lua", Done: make(chan struct{})}
		c.regs[r.Name] = r
		l.write(`test.slow "a" { }`)
		reloaded := make(chan error)
		go func() { reloaded <- l.e.Reload(context.Background()) }()
		synctest.Wait()
		l.wantHealth("test.slow.a", component.Unknown, "waits for the compilation of x.lua")
		began := time.Now()
		if err := l.end(); err != nil {
			t.Error(err)
		}
		l.stop = nil
		if err := <-reloaded; !errors.Is(err, engine.ErrNotRunning) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the shutdown took %s", took)
		}
	})
}

// lookupSpy notes a lookup that came before somebody wanted to be told of changes: such
// a lookup may take long.
type lookupSpy struct {
	pendingCatalog
	waited bool
}

// Lookup notes whether it might have taken long.
func (c *lookupSpy) Lookup(name string) (component.Registration, bool) {
	c.waited = c.waited || c.changed == nil
	return c.pendingCatalog.Lookup(name)
}

// TestImportedFolderDoesNotWait: the worker does not wait for a folder of scripts that is
// imported while weir runs.
func TestImportedFolderDoesNotWait(t *testing.T) {
	bubble(t, func(l *harness) {
		var spy *lookupSpy
		l.onFolder = func(c *catalog) component.Catalog {
			spy = &lookupSpy{pendingCatalog: pendingCatalog{catalog: c}}
			return spy
		}
		l.start("")
		path := filepath.Join(l.dir, "scripts", "x", "y.lua")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("1"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := l.reload("import.scripts \"s\" {\n  path = \"scripts\"\n}\ns.x.y \"a\" { }"); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("s.x.y.a", component.Healthy, "")
		if spy.waited {
			t.Error("a lookup came before OnChange")
		}
	})
}

// TestConfigAndSlowScript: a config that needs the new version of a script is neither
// refused nor applied while that version is being compiled.
func TestConfigAndSlowScript(t *testing.T) {
	type more struct {
		arguments
		Fresh string `alloy:"fresh,attr,optional"`
	}
	const before, after = "test.slow \"a\" { }\ntest.uvalue \"v\" {\n  value = \"1\"\n}\n", "test.slow \"a\" {\n  fresh = \"x\"\n}\ntest.uvalue \"v\" {\n  value = \"2\"\n}\n"
	f := func(name string, next error, wantValue, wantVersion, wantOutcomes string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(l *harness) {
				c := &pendingCatalog{catalog: &catalog{l: l, regs: map[string]component.Registration{}}}
				save := func(version string, newArgs func() any, err error) {
					c.mu.Lock()
					defer c.mu.Unlock()
					r := component.Registration{Name: "test.slow", Version: version, Sources: []string{"x.lua"}, Err: err, NewArgs: newArgs}
					r.Build = func(o component.Options, _ any, _ component.Component) (component.Component, error) {
						return l.build(o, &arguments{}, nil)
					}
					c.regs[r.Name] = r
				}
				save("1", func() any { return &arguments{} }, nil)
				l.options.Catalogs = []component.Catalog{c}
				l.start(before)
				l.takeLines()
				answered := make(chan struct{})
				save("2", nil, fmt.Errorf("x.lua: %w", &component.PendingError{Err: errors.New("it takes long"), What: "the compilation of x.lua", Done: answered}))
				l.write(after)
				reloaded := make(chan []service.Reload, 1)
				go func() {
					records, err := l.e.RequestReload(context.Background(), false)
					if err != nil {
						t.Error(err)
					}
					reloaded <- records
				}()
				synctest.Wait()
				l.wantSaid("")
				if a, _ := l.fake("test.uvalue.v").get(); a.Value != "1" || len(reloaded) > 0 {
					t.Errorf("the value is %q, the request has ended: %t", a.Value, len(reloaded) > 0)
				}
				save("2", func() any { return &more{} }, next)
				c.changed([]string{"x.lua"})
				close(answered)
				records := <-reloaded
				var outcomes []string
				for _, r := range records {
					outcomes = append(outcomes, r.Outcome)
				}
				if got := strings.Join(outcomes, ", "); got != wantOutcomes {
					t.Errorf("got outcomes %s, want %s", got, wantOutcomes)
				}
				if a, _ := l.fake("test.uvalue.v").get(); a.Value != wantValue {
					t.Errorf("the value is %q, want %q", a.Value, wantValue)
				}
				if got := l.info("test.slow.a").Version; got != wantVersion {
					t.Errorf("version %s runs, want %s", got, wantVersion)
				}
			})
		})
	}
	f("it compiles", nil, "2", "2", "in progress, applied")
	f("it does not", errors.New("x.lua:1: syntax error"), "1", "1", "in progress, refused, partial")
}
