package scrape_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// bomb is a clock that panics once after it is armed.
type bomb struct {
	clock.System
	armed *atomic.Bool
}

func (b bomb) NewTimer(d time.Duration) clock.Timer {
	if b.armed.CompareAndSwap(true, false) {
		panic("boom")
	}
	return b.System.NewTimer(d)
}

// TestPanic: a panic because of one target ends the component, and it may take a
// while until the next one starts. Therefore, the series of the other targets
// end.
func TestPanic(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := bomb{armed: new(atomic.Bool)}
		o := n.Options()
		o.Clock = b
		c, err := scrape.Registration().Build(o, n.args(t, list(n.target("one:80", "a 1\n"), n.target("two:80", "a 2\n"))), nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- c.Run(t.Context()) }()
		n.wait(t, 4)
		b.armed.Store(true)
		if err := <-done; err == nil || !strings.Contains(err.Error(), "panicked: boom") {
			t.Fatalf("Run ended with %v, want the panic", err)
		}
		all := n.sink.Batches()
		last := all[len(all)-1]
		diff(t, "last batch", []string{"a stale"}, values(last))
		diff(t, "up", "stale", up(last))
		for _, s := range last.Series {
			if !s.Released() {
				t.Errorf("series %s is not released", s)
			}
		}
	})
}
