package scrape_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// TestLargeTarget: a warning is logged once for an unexpectedly large target,
// unless it has a sample_limit.
func TestLargeTarget(t *testing.T) {
	var b strings.Builder
	for i := range 100_001 {
		fmt.Fprintf(&b, "a{i=\"%d\"} 1\n", i)
	}
	f := func(name, body, more string, warnings int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				tg := n.target("one:80", body)
				c := n.build(t, list(tg)+more)
				stop := n.Run(t, c)
				n.wait(t, 2)
				samples := c.DebugInfo().(scrape.Info).Targets[0].Samples
				stop()
				if got := strings.Count(n.Logs(), "very many samples"); got != warnings {
					t.Errorf("%d warnings of %d samples, want %d", got, samples, warnings)
				}
			})
		})
	}
	f("large", b.String(), "", 1)
	f("bounded", b.String(), "sample_limit = 200000\n", 0)
	f("as usual", "a 1\n", "", 0)
}
