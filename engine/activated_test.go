package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// A registration is told when its component becomes active on a node, and not when it
// is refused.
func TestActivated(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		activated := make(chan string, 10)
		save := func(name string, fails error) {
			r := v.version(name, fails)
			r.Activated = func(node string, at time.Time) {
				activated <- fmt.Sprintf("%s on %s %s ago", name, node, time.Since(at))
				if name == "3" {
					panic("oh no")
				}
			}
			v.save(r)
		}
		want := func(want string) {
			t.Helper()
			synctest.Wait()
			got := ""
			for len(activated) > 0 {
				got += <-activated
			}
			if got != want {
				t.Errorf("active %q, want %q", got, want)
			}
		}
		save("1", nil)
		l.start(`test.sink "a" { }`)
		want("1 on test.sink.a 0s ago")
		save("2", errTrial)
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		want("")
		save("3", nil)
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		want("3 on test.sink.a 0s ago")
		l.wantHealth("test.sink.a", component.Healthy, "running")
	})
}
