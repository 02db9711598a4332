package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// careful is a service with all abilities.
type careful struct {
	*fakeService
	check func(a *arguments, open bool) error
	files []string
}

func (c *careful) Check(config any, open bool) error {
	if c.check == nil {
		return nil
	}
	return c.check(config.(*arguments), open)
}

func (c *careful) Wait(config any) error {
	c.l.event("service %s waits with %q", c.def.Name, config.(*arguments).Value)
	return nil
}

func (c *careful) Sourced() []string { return c.files }

func (l *harness) careful(name, block string) *careful {
	c := &careful{fakeService: l.service(name, block)}
	l.services[len(l.services)-1] = c
	return c
}

// TestServiceWaits: a service is not given its defaults while its block refers
// to what does not run.
func TestServiceWaits(t *testing.T) {
	bubble(t, func(l *harness) {
		l.careful("one", "one_block")
		var mended atomic.Bool
		l.onBuild = func(id string, _ *arguments, _ component.Options) error {
			if id == "test.uvalue.v" && !mended.Load() {
				return errors.New("no file")
			}
			return nil
		}
		l.start(`
one_block {
  value = test.uvalue.v.value
}
test.uvalue "v" {
  value = "first"
}`)
		health := func(state component.HealthState, want string) {
			t.Helper()
			if h := l.e.Overview().Services[0].Health; h.State != state || !strings.Contains(h.Message, want) {
				t.Errorf("got health %+v, want %s %q", h, state, want)
			}
		}
		if got, want := ordered(l.takeEvents()), "build test.uvalue.v\nrun service one\nservice one waits with \"\"\nservice one waits with \"\""; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		health(component.Unhealthy, "refers to a node that has no working version")
		l.wantSaid("started c.alloy (… ms), 1 node, 1 failed\ncannot run test.uvalue.v: cannot build: no file\ncannot configure one: it refers to a node that has no working version")
		if o := l.e.Overview().Reload.Outcome; o != "partial" {
			t.Errorf("got outcome %s", o)
		}

		// The retry succeeds.
		mended.Store(true)
		time.Sleep(2 * time.Second) // the bubble's
		synctest.Wait()
		if got, want := ordered(l.takeEvents()), "build test.uvalue.v\nupdate service one with \"first\"\nrun test.uvalue.v"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		health(component.Healthy, "running")

		// The service is also told of a value that cannot be decoded, and goes back to
		// the same arguments.
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "invalid"})
		synctest.Wait()
		l.wantEvents("service one waits with \"invalid\"")
		l.takeLines()
		health(component.Unhealthy, "invalid")
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "first"})
		synctest.Wait()
		l.wantEvents("update service one with \"first\"")
		health(component.Healthy, "running")
	})
}

// TestServiceChecks: a change that a service cannot follow is refused as a
// whole, with its position.
func TestServiceChecks(t *testing.T) {
	bubble(t, func(l *harness) {
		one := l.careful("one", "one_block")
		var asked []bool
		one.check = func(a *arguments, open bool) error {
			asked = append(asked, open)
			switch a.Value {
			case "nested":
				return &component.ArgumentError{Path: "value", Err: errors.New("cannot read it")}
			case "all":
				return errors.New("never")
			case "default":
				if len(asked) > 1 {
					return errors.New("not without")
				}
			}
			return nil
		}
		l.start("one_block {\n  value = \"good\"\n}\ntest.source \"a\" { }")
		l.takeEvents()
		f := func(config, want string) {
			t.Helper()
			err := l.reload(config)
			if err == nil {
				err = errors.New("nothing")
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", config, err, want)
			}
			l.wantEvents("")
		}
		f("test.source \"b\" { }\none_block {\n  value = \"nested\"\n}", ":3:11: cannot read it")
		f("one_block {\n  value = \"all\"\n}", ":1:1: never")
		f("test.source \"b\" { }", ": block one_block is gone (it was at ")
		if i := l.e.Overview(); i.Services[0].Health.State != component.Healthy || i.Reload.Outcome != "refused" {
			t.Errorf("got %+v", i)
		}
		// A block that is misspelt is gone, too: what is said is what to mend.
		l.takeLines()
		f("one_blok {\n  value = \"good\"\n}", "one_blok")
		if got := l.takeLines(); !strings.Contains(got, "c.alloy:1:1: component one_blok does not exist (did you mean one_block?) (and 1 more)") {
			t.Errorf("said %s", got)
		}
		// It refers to a node that is new: asked with open, told when it is there.
		asked = nil
		if err := l.reload("one_block {\n  value = test.uvalue.v.value\n}\ntest.uvalue \"v\" {\n  value = \"new\"\n}\ntest.source \"a\" { }"); err != nil {
			t.Error(err)
		}
		if len(asked) != 1 || !asked[0] {
			t.Errorf("asked with open %v", asked)
		}
		if got := l.takeEvents(); !strings.Contains(got, "update service one with \"new\"") {
			t.Errorf("got %s", got)
		}
	})
}

// TestServiceFiles: a service is updated when a file it reads changes, also one
// that was not there.
func TestServiceFiles(t *testing.T) {
	bubble(t, func(l *harness) {
		one := l.careful("one", "one_block")
		path := filepath.Join(l.dir, "cert")
		one.files = []string{path}
		missing := errors.New("missing")
		var fail error
		one.update = func(*arguments) error { return fail }
		l.start("one_block {\n  value = \"good\"\n}\ntest.source \"a\" { }")
		l.takeEvents()
		change := func(content string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := l.e.FilesChanged(context.Background(), []string{path}); err != nil {
				t.Error(err)
			}
		}
		change("1")
		l.wantEvents("update service one with \"good\"")
		fail = missing
		change("2")
		l.wantEvents("")
		if h := l.e.Overview().Services[0].Health; h.State != component.Unhealthy || h.Message != "cannot update: missing" {
			t.Errorf("got %+v", h)
		}
		fail = nil
		change("3")
		if got := l.takeEvents(); !strings.HasPrefix(got, "update service one with \"good\"") {
			t.Errorf("got %s", got)
		}
		if h := l.e.Overview().Services[0].Health; h.State != component.Healthy {
			t.Errorf("got %+v", h)
		}
	})
}

// TestNodeWaitsForFirstVersion: what refers to a node that never could be built
// is not built with nothing, but when it can, also if it exports nothing new.
func TestNodeWaitsForFirstVersion(t *testing.T) {
	bubble(t, func(l *harness) {
		var mended atomic.Bool
		l.onBuild = func(id string, _ *arguments, _ component.Options) error {
			if id == "test.uvalue.v" && !mended.Load() {
				return errors.New("no file")
			}
			return nil
		}
		l.start("test.uvalue \"v\" { }\ntest.source \"a\" {\n  value = test.uvalue.v.value\n}")
		l.wantHealth("test.source.a", component.Unhealthy, "it refers to a node that has no working version")
		l.wantEvents("build test.uvalue.v")
		mended.Store(true)
		time.Sleep(2 * time.Second) // the bubble's
		synctest.Wait()
		l.wantHealth("test.source.a", component.Healthy, "running")
	})
}
