package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// exported are the exports in the form of the status API, "" when there were
// none yet.
func (n *harness) exported() string {
	x := n.Exports()
	if x == nil {
		return ""
	}
	return fmt.Sprint(config.Redact(x))
}

// The config sees the values of ctx.export when all of them are set. After a
// reload, they stay until they are set again, if their declaration is
// unchanged.
func TestExports(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		n.save(`return weir.source {
			exports = {
				targets = weir.arg.targets {}, n = weir.arg.int {}, d = weir.arg.duration {}, e = weir.arg.enum { values = { "a", "b" } },
				l = weir.arg.list { of = weir.arg.enum { values = { "x" } } }, m = weir.arg.map { of = weir.arg.number {} },
				re = weir.arg.regexp {}, s = weir.arg.secret {}, size = weir.arg.size {},
			},
			setup = function(ctx) ctx.export { targets = { { __address__ = "a:1", port = 8080, up = true } } } end,
			every = { ["1s"] = function(ctx)
				ctx.export { n = 5, d = "1m", e = "b", l = { "x" }, m = {}, re = "a+", s = ctx.secret("hush"), size = "1KiB" }
			end },
		}`, "")
		pass(500 * time.Millisecond)
		same(t, n.exported(), "") // not all are there
		pass(time.Second)
		want := "map[d:1m e:b l:[x] m:map[] n:5 re:a+ s:(secret) size:1KiB targets:[map[__address__:a:1 port:8080 up:true]]]"
		same(t, n.exported(), want)

		// As another version declares as much or less, what is known stays.
		n.save(`return weir.source {
			exports = { targets = weir.arg.targets {}, n = weir.arg.int {} },
			poll = function(ctx) ctx.sleep(0.5) ctx.export { n = ctx.now() % 60000 } end,
		}`, `interval = "1m"`)
		same(t, n.exported(), "map[n:5 targets:[map[__address__:a:1 port:8080 up:true]]]")
		pass(time.Second)
		same(t, n.exported(), "map[n:1500 targets:[map[__address__:a:1 port:8080 up:true]]]")
	})
}

// Wrong exports are mistakes of the script, and give nothing.
func TestWrongExports(t *testing.T) {
	f := func(export, want string) {
		t.Helper()
		n := newHarness(t)
		n.save(`return weir.source {
			exports = { targets = weir.arg.targets {}, n = weir.arg.int { }, e = weir.arg.enum { values = { "a", "b" } } },
			setup = function(ctx) ctx.export(`+export+`) end,
			run = function() end,
		}`, "")
		until(t, func() bool { return n.Health().State == component.Unhealthy })
		if got := n.Health().Message; !strings.Contains(got, want) || !strings.Contains(got, "b.lua:4") {
			t.Errorf("%s: got %q, want %q", export, got, want)
		}
		same(t, n.exported(), "")
		n.stop()
	}
	f(`{ target = {} }`, `cannot export "target": the definition's exports have e, n, targets; did you mean targets?`)
	f(`{ targets = "x" }`, `cannot export "targets": "x" is not a list`)
	f(`{ targets = { { __address__ = { "x" } } } }`, `cannot export "targets": element 1: "__address__": a list is not a string`)
	f(`{ targets = { { __address__ = ctx.secret("x") } } }`, `cannot export "targets": element 1: "__address__": a secret is not a string`)
	f(`{ n = 1.5 }`, `cannot export "n": 1.5 is not an integer`)
	f(`{ n = 1, e = "c" }`, `cannot export "e": "c" is not one of a, b`)
	f(``, `argument values is missing`)
}

// Exporting is an error in components without the export.
func TestNoExports(t *testing.T) {
	n := newHarness(t)
	n.save(`return weir.source { run = function(ctx) ctx.export {} end }`, "")
	until(t, func() bool { return n.Health().State == component.Unhealthy })
	if got, want := n.Health().Message, "cannot use ctx.export: the definition declares no exports; write exports = { targets = weir.arg.targets {} }"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	n.save(`return weir.transform { metrics = function(batch, ctx) ctx.export {} end }`, "")
	n.send(text(t, 1, "a 1\n"))
	if got, want := n.Health().Message, "cannot use ctx.export: only a weir.source can export values; a transform exports only its receiver"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A script may become one of another kind.
func TestKindChanges(t *testing.T) {
	timed(t, func(t *testing.T, n *harness) {
		start := time.Now()
		n.save(fmt.Sprintf(label, "1"), "")
		same(t, n.send(text(t, 1, "a 1\n")), "a{v=\"1\"} 1\n")
		n.sink.Forget()
		n.save(`return weir.source { every = { ["1s"] = function(ctx) ctx.emit { name = "x", value = 1 } end } }`, "")
		pass(1500 * time.Millisecond)
		same(t, n.emitted(start), "1s: x 1\n")
		n.save(fmt.Sprintf(label, "2"), "")
		pass(0)
		same(t, n.emitted(start), "1.5s: x stale\n")
		same(t, n.send(at(text(t, 1, "a 1\n"), 2000)), "a{v=\"2\"} 1\na{v=\"1\"} stale\n")
	})
}
