package scrape_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// TestHostileBodies: whatever a body contains, the scrape fails or returns
// samples, and its error message is short.
func TestHostileBodies(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := func(name, body, wantUp string, samples int) {
		t.Helper()
		t.Run(name, func(t *testing.T) { hostileBody(t, body, wantUp, samples) })
	}

	f("value of a megabyte", fmt.Sprintf("a{l=%q} 1\n", long), "1", 1)
	f("name of a megabyte", long+" 1\n", "1", 1)
	f("label name of a megabyte", fmt.Sprintf("a{%s=\"1\"} 1\n", long), "1", 1)
	f("help of a megabyte", "# HELP a "+long+"\na 1\n", "1", 1)
	f("100,000 labels", "a{"+labelList(100_000)+"} 1\n", "1", 1)
	f("number of a megabyte", "a "+strings.Repeat("1", 1<<20)+"\n", "0", 0)
	f("invalid name together with a megabyte", fmt.Sprintf("a{\"b c\"=\"1\",l=%q} 1\n", long), "0", 0)
	f("no number", "a "+long+"\n", "0", 0)
	f("line that does not end", "a{l=\""+long, "0", 0)
	f("wrong label name", fmt.Sprintf("a{0%s=\"1\"} 1\n", long), "0", 0)
	f("invalid UTF-8 in a value", "a{l=\"\xff\"} 1\n", "0", 0)
	f("invalid UTF-8 in a name", "a\xff 1\n", "0", 0)
	f("invalid UTF-8 in a help", "# HELP a \xff\na 1\n", "0", 0)
	f("label that appears twice", fmt.Sprintf("a{l=%q,l=%q} 1\n", long, long), "0", 0)
	f("NULs", strings.Repeat("\x00", 1<<20), "1", 0) // the end of the body for textparse
	f("a page", "<!DOCTYPE html><html>"+long, "0", 0)
	f("line feeds", strings.Repeat("\n", 1<<20), "1", 0)
}

func hostileBody(t *testing.T, body, wantUp string, samples int) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", body)
		c := n.build(t, list(tg))
		stop := n.Run(t, c)
		bs := n.wait(t, 2)
		info := c.DebugInfo().(scrape.Info)
		stop()
		for _, b := range bs {
			if got := len(values(b)); up(b) != wantUp || got != samples {
				t.Errorf("up is %s with %d samples, want %s with %d", up(b), got, wantUp, samples)
			}
		}
		if wantUp == "0" && !strings.Contains(n.Logs(), "scrape failed") {
			t.Error("nothing is logged")
		}
		if len(n.Logs()) > 5000 || len(info.Targets[0].Error) > 2000 {
			t.Errorf("the log has %d bytes, the error %d", len(n.Logs()), len(info.Targets[0].Error))
		}
	})
}

func labelList(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d=\"v\",", i)
	}
	return b.String()
}
