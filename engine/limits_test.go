package engine_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestLimits gives configs that are small and would come to much.
func TestLimits(t *testing.T) {
	f := func(config, want string) {
		t.Helper()
		bubble(t, func(l *harness) {
			l.write(config)
			_, ds := l.newEngine().Check(l.config)
			if got := diagnostics(ds); !strings.Contains(got, want) || strings.Count(got, "\n") > 3 {
				t.Errorf("got %.500s\nwant %s", got, want)
			}
		})
	}
	var wide, deep strings.Builder
	wide.WriteString("declare \"d0\" {\n  test.value \"v\" { }\n}\n")
	deep.WriteString("declare \"d0\" {\n  test.value \"v\" { }\n}\n")
	for i := range 8 {
		fmt.Fprintf(&wide, "declare \"d%d\" {\n", i+1)
		for k := range 10 {
			fmt.Fprintf(&wide, "  d%d \"x%d\" { }\n", i, k)
		}
		wide.WriteString("}\n")
	}
	for i := range 50 {
		fmt.Fprintf(&deep, "declare \"d%d\" {\n  d%d \"x\" { }\n}\n", i+1, i)
	}
	f(wide.String()+"d8 \"x\" { }\n", "the config comes to more than 100000 nodes")
	f(deep.String()+"d50 \"x\" { }\n", "instances are nested deeper than 32")

	items := "[" + strings.Repeat("1,", 10_001) + "]"
	f("foreach \"x\" {\n  collection = "+items+"\n  var = \"each\"\n  template { }\n}\n", "c.alloy:2:16: collection: has 10001 items, more than the 10000 allowed")
}
