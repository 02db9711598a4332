package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// insteadOf has a registration name another version.
func insteadOf(r component.Registration, other *component.Registration) component.Registration {
	r.Instead = func(node string) *component.Registration {
		if node != "test.sink.a" {
			return nil
		}
		return other
	}
	return r
}

var errCompile = errors.New("a.lua:3: unexpected end")

func broken(version string) component.Registration {
	return component.Registration{Name: "test.sink", Version: version, Err: errCompile}
}

// A pinned node runs its version at the start and after a change; other nodes run the
// version on disk.
func TestPinned(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		one := v.version("1", nil)
		v.save(insteadOf(v.version("2", nil), &one))
		l.start("test.sink \"a\" { }\ntest.sink \"b\" { }")
		want := func(a, b string) {
			t.Helper()
			if gotA, gotB := l.info("test.sink.a").Version, l.info("test.sink.b").Version; gotA != a || gotB != b {
				t.Errorf("a runs version %s and b %s, want %s and %s", gotA, gotB, a, b)
			}
		}
		change := func(r component.Registration) {
			t.Helper()
			v.save(r)
			if err := l.changed(); err != nil {
				t.Fatal(err)
			}
		}
		want("1", "2")
		change(v.version("2", nil))
		want("2", "2")
		change(insteadOf(v.version("2", nil), &one))
		want("1", "2")

		// A pinned version that does not fit the config does not replace the running one.
		change(v.version("2", nil))
		if err := l.reload("test.sink \"a\" {\n  value = \"x\"\n}\ntest.sink \"b\" { }"); err != nil {
			t.Fatal(err)
		}
		other := v.version("0", nil)
		other.NewArgs = func() any { return &struct{}{} }
		change(insteadOf(v.version("2", nil), &other))
		want("2", "2")
		l.wantHealth("test.sink.a", component.Unhealthy, "running version 2; 0 refused by check: ")
		change(v.version("2", nil))
		l.wantHealth("test.sink.a", component.Healthy, "")
	})
}

// A rollback also takes effect while the version on disk does not compile. Without a pin,
// the running version stays.
func TestPinnedWhileBroken(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		one := v.version("1", nil)
		v.save(v.version("2", nil))
		l.start("test.sink \"a\" { }")
		for _, c := range []struct {
			pinned bool
			runs   string
		}{{false, "2"}, {true, "1"}, {true, "1"}, {false, "1"}} {
			one.Pinned = c.pinned
			v.save(insteadOf(broken("3"), &one))
			if err := l.changed(); err != nil {
				t.Fatal(err)
			}
			v.wantRuns(t, c.runs)
			l.wantHealth("test.sink.a", component.Unhealthy, "running version "+c.runs+"; 3 refused by compile: "+errCompile.Error())
		}
	})
}

// At the start, a pinned version that does not fit the config is left out.
func TestPinnedDoesNotFit(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		other := v.version("1", nil)
		other.NewArgs = func() any { return &struct{}{} }
		v.save(insteadOf(v.version("2", nil), &other))
		l.start("test.sink \"a\" {\n  value = \"x\"\n}")
		v.wantRuns(t, "2")
		l.wantHealth("test.sink.a", component.Unhealthy, "running version 2; 1 refused by check: ")
	})
}

// Only pinned versions that have a mistake themselves are left out.
func TestPinnedFits(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		fits, other := v.version("0", nil), v.version("1", nil)
		other.NewArgs = func() any { return &struct{}{} }
		r := v.version("2", nil)
		r.Instead = func(node string) *component.Registration {
			if node == "test.sink.a" {
				return &other
			}
			return &fits
		}
		v.save(r)
		l.start("test.sink \"a\" {\n  value = \"x\"\n}\ntest.sink \"b\" { }")
		if a, b := l.info("test.sink.a").Version, l.info("test.sink.b").Version; a != "2" || b != "0" {
			t.Errorf("a runs version %s and b %s, want 2 and 0", a, b)
		}
		l.wantHealth("test.sink.b", component.Healthy, "running")
	})
}

// A pinned version is left out at the start if another block does not fit it.
func TestPinnedDoesNotFitOtherBlock(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		other := v.version("1", nil)
		other.Exports = valueExports{}
		v.save(insteadOf(v.version("2", nil), &other))
		l.start("test.sink \"a\" { }\ntest.source \"s\" {\n  forward_to = [test.sink.a.receiver]\n}")
		v.wantRuns(t, "2")
		l.wantHealth("test.sink.a", component.Unhealthy, "running version 2; 1 refused by check: ")
	})
}

// If the version on disk is broken at the start, the last good one runs until another
// one does.
func TestLastGood(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		one := v.version("1", nil)
		v.save(insteadOf(broken("2"), &one))
		l.start("test.sink \"a\" { }\ntest.value \"b\" { }")
		v.wantRuns(t, "1")
		const message = "running version 1; 2 refused by compile: a.lua:3: unexpected end"
		l.wantHealth("test.sink.a", component.Unhealthy, message)
		l.wantSaid("started c.alloy (… ms), 2 nodes, 1 failed\ncannot reload test.sink.a: " + message)
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		l.wantSaid("")

		v.save(insteadOf(broken("3"), nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		l.wantHealth("test.sink.a", component.Unhealthy, "running version 1; 3 refused by compile")
		v.save(v.version("4", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "4")
		l.wantHealth("test.sink.a", component.Healthy, "")

		// While a version runs, a broken one is not replaced by another.
		v.save(insteadOf(broken("5"), &one))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "4")
	})
}

// A last good version that does not fit the config does not stop weir from starting.
func TestLastGoodDoesNotFit(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		other := v.version("1", nil)
		other.NewArgs = func() any { return &struct{}{} }
		other.Build = func(o component.Options, _ any, _ component.Component) (component.Component, error) {
			return l.build(o, &arguments{}, nil)
		}
		v.save(insteadOf(broken("2"), &other))
		l.start("test.sink \"a\" {\n  value = \"x\"\n}")
		l.wantHealth("test.sink.a", component.Unhealthy, "no version is running; 2 refused by compile: a.lua:3: unexpected end")
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		if err := l.reload("test.sink \"a\" { }"); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.sink.a", component.Unhealthy, "running version 1; 2 refused by compile")
	})
}

// If the files of a version are gone at the start, the last good one runs. The config is
// refused if there is none, or if a block is new.
func TestLastGoodRemoved(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		one := v.version("1", nil)
		gone := component.Registration{Name: "test.sink", Err: errors.New("component test.sink is no longer there: a.lua is gone")}
		l.catalog.gone = map[string]component.Registration{"test.sink": insteadOf(gone, &one)}
		l.catalog.remove("test.sink")
		l.start("test.sink \"a\" { }\ntest.value \"b\" { }")
		v.wantRuns(t, "1")
		const message = "running version 1; component test.sink is no longer there: a.lua is gone"
		l.wantHealth("test.sink.a", component.Unhealthy, message)
		l.wantSaid("started c.alloy (… ms), 2 nodes, 1 failed\ncannot reload test.sink.a: " + message)
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		l.wantSaid("")
		if err := l.reload("test.sink \"a\" { }\ntest.value \"c\" { }"); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "1")
		if err := l.reload("test.sink \"a\" { }\ntest.sink \"new\" { }"); err == nil || !strings.Contains(err.Error(), "2:1: component test.sink does not exist") {
			t.Errorf("a new block without a file is accepted: %v", err)
		}
		v.save(v.version("2", nil))
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		v.wantRuns(t, "2")
		l.wantHealth("test.sink.a", component.Healthy, "")
	})
	bubble(t, func(l *harness) {
		l.catalog.gone = map[string]component.Registration{"test.sink": insteadOf(component.Registration{Name: "test.sink", Err: errCompile}, nil)}
		l.catalog.remove("test.sink")
		l.start("test.sink \"a\" { }")
		<-l.done
		if l.err == nil || !strings.Contains(l.err.Error(), "component test.sink does not exist") {
			t.Errorf("a component that never was is accepted: %v", l.err)
		}
	})
}
