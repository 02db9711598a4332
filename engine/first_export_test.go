package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/component"
)

// TestFirstExport: what refers to a node whose exports come after it was built
// is built when they have come, also when they are the zero value, and nothing
// else waits for them.
func TestFirstExport(t *testing.T) {
	f := func(value string) {
		t.Helper()
		bubble(t, func(l *harness) {
			l.catalog.add(component.Registration{Name: "test.later", Exports: valueExports{}, ExportsLater: true})
			export := make(chan string)
			l.onRun = func(ctx context.Context, f *fake) error {
				for f.id == "test.later.v" {
					select {
					case v := <-export:
						f.o.Export(valueExports{Value: v})
					case <-ctx.Done():
						return nil
					}
				}
				<-ctx.Done()
				return nil
			}
			const head = "test.later \"v\" { }\ntest.usource \"other\" { }\n"
			const through = "declare \"d\" {\n  argument \"v\" { }\n  test.usource \"in\" {\n    value = argument.v.value\n  }\n}\nd \"x\" {\n  v = test.later.v.value\n}\n"
			l.start(head + "test.usource \"a\" {\n  value = test.later.v.value\n}\n" + through)
			l.takeEvents()
			l.wantHealth("test.later.v", component.Healthy, "running")
			l.wantHealth("test.usource.a", component.Unknown, "waits for test.later.v")
			l.wantHealth("d.x/test.usource.in", component.Unknown, "waits for test.later.v")

			// A node that runs keeps what it has, over a reload too.
			const both = "test.later \"v\" { }\ntest.usource \"other\" {\n  value = test.later.v.value\n}\ntest.usource \"a\" {\n  value = test.later.v.value\n}\n" + through
			if err := l.reload(both); err != nil {
				t.Fatal(err)
			}
			l.wantEvents("")
			l.wantHealth("test.usource.other", component.Healthy, "running")

			export <- value
			synctest.Wait()
			l.wantHealth("test.usource.a", component.Healthy, "running")
			l.wantHealth("d.x/test.usource.in", component.Healthy, "running")
			for _, id := range []string{"test.usource.a", "d.x/test.usource.in", "test.usource.other"} {
				if a, _ := l.fake(id).get(); a.Value != value {
					t.Errorf("%s got %q, want %q", id, a.Value, value)
				}
			}
			l.takeEvents()
			if err := l.reload(both); err != nil {
				t.Fatal(err)
			}
			l.wantEvents("")
		})
	}
	f("x")
	f("") // what they are before
}
