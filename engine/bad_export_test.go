package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/component"
)

// TestBadExport: an export of which a node can make nothing is that node's
// matter, also when files or the config change meanwhile.
func TestBadExport(t *testing.T) {
	bubble(t, func(l *harness) {
		file := l.save("m.alloy", []byte(strings.Replace(passModule, "VALUE", "1", 1)))
		const main = "test.uvalue \"v\" { }\ntest.usource \"a\" {\n  value = test.uvalue.v.value\n}\nimport.file \"m\" {\n  filename = \"m.alloy\"\n}\nm.p \"x\" { }\n"
		l.start(main)
		export := func(value string) {
			l.fake("test.uvalue.v").o.Export(valueExports{Value: value})
			synctest.Wait()
		}
		change := func(text string) {
			t.Helper()
			l.save("m.alloy", []byte(text))
			if err := l.e.FilesChanged(context.Background(), []string{file}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		value := func(id, want string) {
			t.Helper()
			if a, _ := l.fake(id).get(); a.Value != want {
				t.Errorf("%s has %q, want %q", id, a.Value, want)
			}
		}
		export("invalid")
		l.wantHealth("test.usource.a", component.Unhealthy, "must not be")
		change(strings.Replace(passModule, "VALUE", "2", 1))
		value("m.p.x/test.upass.x", "2")
		l.wantHealth("import.file.m", component.Healthy, "")

		// A mistake of the module is the module's.
		change("declare \"p\" {\n")
		l.wantHealth("import.file.m", component.Unhealthy, "is not closed")
		l.wantHealth("test.usource.a", component.Unhealthy, "must not be")
		export("invalid") // also when a plan is made for exports
		l.wantHealth("import.file.m", component.Unhealthy, "is not closed")
		change(strings.Replace(passModule, "VALUE", "3", 1))

		// A reload too; and when the value is right, all is.
		if err := l.reload(main + "test.usource \"b\" {\n  value = test.uvalue.v.value\n}\n"); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("test.usource.a", component.Unhealthy, "must not be")
		l.wantHealth("test.usource.b", component.Unhealthy, "must not be")
		export("good")
		l.wantHealth("test.usource.a", component.Healthy, "running")
		l.wantHealth("test.usource.b", component.Healthy, "running")
		value("test.usource.b", "good")

		// A module that cannot use a value waits for another value.
		export("invalid")
		change("declare \"p\" {\n  test.upass \"y\" {\n    value = argument.v.value\n  }\n  argument \"v\" {\n    optional = true\n    default = \"4\"\n  }\n}\n")
		value("m.p.x/test.upass.y", "4")
	})
}

// TestKeptModuleWaits: new content that makes a mistake of a value is taken when
// the value is another.
func TestKeptModuleWaits(t *testing.T) {
	bubble(t, func(l *harness) {
		const module = "declare \"p\" {\n  argument \"v\" { }\n  test.upass \"x\" {\n    VALUE\n  }\n}\n"
		file := l.save("m.alloy", []byte(strings.Replace(module, "VALUE", "", 1)))
		l.start("test.uvalue \"v\" { }\nimport.file \"m\" {\n  filename = \"m.alloy\"\n}\nm.p \"x\" {\n  v = test.uvalue.v.value\n}\n")
		export := func(value string) {
			l.fake("test.uvalue.v").o.Export(valueExports{Value: value})
			synctest.Wait()
		}
		export("invalid")
		l.save("m.alloy", []byte(strings.Replace(module, "VALUE", "value = argument.v.value", 1)))
		if err := l.e.FilesChanged(context.Background(), []string{file}); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("import.file.m", component.Unhealthy, "argument v does not fit: value must not be")
		l.wantHealth("m.p.x/test.upass.x", component.Healthy, "running")
		export("good")
		l.wantHealth("import.file.m", component.Healthy, "")
		if a, _ := l.fake("m.p.x/test.upass.x").get(); a.Value != "good" {
			t.Errorf("got %q", a.Value)
		}
	})
}

// TestExportsAllTheTime: who exports faster than others can follow holds up no
// reload.
func TestExportsAllTheTime(t *testing.T) {
	bubble(t, func(l *harness) {
		const main = "test.uvalue \"v\" { }\ntest.usource \"a\" {\n  value = test.uvalue.v.value\n}\n"
		l.start(main)
		n, reloaded := 0, false // the worker's
		busy := make(chan struct{})
		l.mu.Lock()
		l.onUpdate = func(id string, _ *arguments) error {
			switch n++; n {
			case 10:
				close(busy)
			case 10_000:
				t.Error("the reload waits for the end of all exports")
			}
			if id == "test.usource.a" && n < 10_000 && !reloaded {
				l.fake("test.uvalue.v").o.Export(valueExports{Value: strings.Repeat("x", n%7)})
			}
			return nil
		}
		l.onBuild = func(id string, _ *arguments, _ component.Options) error {
			reloaded = reloaded || id == "test.source.b"
			return nil
		}
		l.mu.Unlock()
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "start"})
		<-busy
		if err := l.reload(main + "test.source \"b\" { }\n"); err != nil {
			t.Fatal(err)
		}
	})
}
