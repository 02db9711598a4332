package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// TestOverlaps: what is asked from outside goes on until the next version runs;
// another source ends before.
func TestOverlaps(t *testing.T) {
	f := func(overlaps bool, want string) {
		t.Helper()
		bubble(t, func(l *harness) {
			r := l.catalog.regs["test.value"]
			r.Overlaps = overlaps
			l.catalog.add(r)
			runs, second := 0, make(chan struct{})
			l.onRun = func(ctx context.Context, f *fake) error {
				l.mu.Lock()
				runs++
				first := runs == 1
				l.mu.Unlock()
				if !first {
					close(second)
				}
				<-ctx.Done()
				if !first {
					return nil
				}
				if overlaps && errors.Is(context.Cause(ctx), component.ErrReplaced) {
					<-second
				}
				l.event("first ends")
				return nil
			}
			l.start(`test.value "a" { value = "1" }`)
			l.takeEvents()
			if err := l.reload(`test.value "a" { value = "2" }`); err != nil {
				t.Error(err)
			}
			if got := l.takeEvents(); got != want {
				t.Errorf("overlaps %v: got events:\n%s\nwant:\n%s", overlaps, got, want)
			}
		})
	}
	f(true, "build test.value.a\nrun test.value.a\nfirst ends\nreplaced test.value.a")
	f(false, "build test.value.a\nfirst ends\nreplaced test.value.a\nrun test.value.a")
}
