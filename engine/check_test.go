package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
)

// checked is test.pass whose registration wants a certain value.
func checked(version, want string) component.Registration {
	return component.Registration{Name: "test.source", Version: version, Check: func(args any, settled func(string) bool) []*component.ArgumentError {
		a := args.(*arguments)
		switch {
		case !settled("value"):
			return nil
		case a.Value == "odd":
			return []*component.ArgumentError{{Path: "value", Err: errors.New("value is odd"), Warning: true}}
		case a.Value != want:
			return []*component.ArgumentError{{Path: "value", Err: errors.New("value is not what is wanted"), Detail: "value = \"" + want + "\""}}
		}
		return nil
	}}
}

func TestRegistrationChecks(t *testing.T) {
	l := newHarness(t)
	l.catalog.add(checked("1", "a"))
	l.write(`test.source "fine" { value = "a" }
test.source "wrong" {
  number = 1
  value  = "b"
}
test.source "none" { }
test.source "odd" { value = "odd" }
test.value "v" { value = "x" }
test.source "open" { value = test.value.v.value }
`)
	_, ds := l.newEngine().Check(l.config)
	var got []string
	for _, d := range ds {
		got = append(got, strings.ReplaceAll(d.Error(), l.dir+"/", ""))
	}
	want := []string{
		"c.alloy:4:12: value is not what is wanted\n  value = \"a\"",
		"c.alloy:6:1: value is not what is wanted\n  value = \"a\"",
		"c.alloy:7:29: warning: value is odd",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	blocks, _, more := l.e.Blocks(l.config)
	if len(blocks) != 6 || blocks[1].ID != "test.source.wrong" || blocks[1].Position != l.config+":2" || blocks[1].Args.(*arguments).Value != "b" || len(more) != len(ds) {
		t.Errorf("got %+v with %d diagnostics", blocks, len(more))
	}
}

// A component whose new version wants other arguments stays on its last good
// version, and the others go on; with a config that it refuses, the change is
// refused.
func TestRegistrationChecksWhileRunning(t *testing.T) {
	bubble(t, func(l *harness) {
		l.catalog.add(checked("1", "a"))
		l.start(`test.source "x" { value = "a" }` + "\n" + `test.value "v" { value = "1" }`)
		l.takeEvents()
		l.catalog.add(checked("2", "b"))
		if err := l.changed(); err != nil {
			t.Errorf("a saved script refuses the change: %v", err)
		}
		l.wantEvents("")
		l.wantHealth("test.source.x", component.Unhealthy, "value is not what is wanted")
		l.wantHealth("test.value.v", component.Healthy, "")

		if err := l.reload(`test.source "x" { value = "c" }`); err == nil || !strings.Contains(err.Error(), "value is not what is wanted") {
			t.Errorf("the config is taken: %v", err)
		}
		l.wantEvents("")
		if err := l.reload(`test.source "x" { value = "b" }` + "\n" + `test.value "v" { value = "1" }`); err != nil {
			t.Error(err)
		}
		l.wantHealth("test.source.x", component.Healthy, "")
	})
}

// own is an arguments struct that names weir's own files.
type own struct {
	Path string `alloy:"path,attr"`
}

func (a *own) CheckStorage(dir string) []*component.ArgumentError {
	if !strings.HasPrefix(a.Path, dir) {
		return nil
	}
	return []*component.ArgumentError{{Path: "path", Err: errors.New("path is weir's own"), Warning: true}}
}

// TestStorageIsChecked: arguments are asked about the storage directory, if it is
// known.
func TestStorageIsChecked(t *testing.T) {
	l := newHarness(t)
	l.write(`test.own "a" { path = "/elsewhere" }
test.own "b" { path = "` + l.dir + `/x" }`)
	f := func(storage, want string) {
		t.Helper()
		r := component.Registration{Name: "test.own", NewArgs: func() any { return new(own) }, Build: l.build}
		e, err := engine.New(engine.Options{Catalogs: []component.Catalog{component.NewList(r)}, StoragePath: storage})
		if err != nil {
			t.Fatal(err)
		}
		_, ds := e.Check(l.config)
		got := ""
		for _, d := range ds {
			got += strings.ReplaceAll(d.Error(), l.dir+"/", "")
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(l.dir, "c.alloy:2:23: warning: path is weir's own")
	f("", "")
}

// TestGetenv: sys.env of a config, and of the modules that it uses, is Options.Getenv.
func TestGetenv(t *testing.T) {
	bubble(t, func(l *harness) {
		l.options.Getenv = func(name string) string { return "value of " + name }
		l.start(`
declare "m" {
  test.source "in" { value = sys.env("B") }
}
m "x" { }
test.source "a" { value = sys.env("A") + constants.version }
`)
		for id, want := range map[string]string{"test.source.a": "value of Av1", "m.x/test.source.in": "value of B"} {
			if a, _ := l.fake(id).get(); a.Value != want {
				t.Errorf("%s: got %q, want %q", id, a.Value, want)
			}
		}
	})
}
