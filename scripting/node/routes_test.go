package node_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// routeNode is a node with outputs, saved again and again. Its receivers are
// sinks by name.
type routeNode struct {
	t     *testing.T
	f     registrytest.Folder
	cat   component.Catalog
	node  *componenttest.Node
	c     component.Component
	sinks map[string]*flowtest.Sink
	seen  map[string]int
	at    int64
	b     *batch.Metrics
}

func newRouteNode(t *testing.T) *routeNode {
	n := &routeNode{
		t: t, f: registrytest.NewFolder(t), node: componenttest.New(t, "a.b.x"), sinks: map[string]*flowtest.Sink{}, seen: map[string]int{},
		b: text(t, batch.NewSource(), "a 1\nb 20\n"),
	}
	n.cat = n.f.Catalog(nil)
	for _, name := range []string{"main", "errors", "other"} {
		n.sinks[name] = flowtest.NewSink(name)
	}
	return n
}

// save writes the script and builds it with a body in which MAIN and so on are
// the sinks.
func (n *routeNode) save(src, body string) {
	n.t.Helper()
	path := n.f.Write("a/b.lua", "local weir = require \"weir\"\nreturn weir.transform "+src)
	n.cat.Refresh([]string{path})
	r := registrytest.Lookup(n.t, n.cat, "a.b")
	if r.Err != nil {
		n.t.Fatal(r.Err)
	}
	args, ds := n.decode(r, body)
	if len(ds) > 0 {
		n.t.Fatal(ds.Err())
	}
	n.node.Previous = n.c
	n.c = n.node.Build(n.t, r, args)
}

func (n *routeNode) decode(r component.Registration, body string) (any, config.Diagnostics) {
	cfg, ds := config.Parse(map[string]string{"test.alloy": "a.b \"x\" {\n" + body + "\n}\n"})
	if len(ds) > 0 {
		return nil, ds
	}
	scope := cfg.NewScope("test")
	for name, sink := range n.sinks {
		scope.Set("prometheus.echo."+name, struct {
			Receiver *flow.Receiver `alloy:"receiver,attr"`
		}{sink.Receiver()})
	}
	args := r.NewArgs()
	return args, cfg.Blocks[0].Decode(scope, args)
}

// want sends the batch a second later, with the values given, and compares what
// came where; nil values are markers.
func (n *routeNode) want(want map[string]string, values ...float64) {
	n.t.Helper()
	n.at += 1000
	b := *n.b
	b.T, b.V = []int64{n.at, n.at}, values
	if err := n.c.(flow.MetricsConsumer).ConsumeMetrics(n.t.Context(), &b); err != nil {
		n.t.Fatal(err)
	}
	got := map[string]string{}
	for name, sink := range n.sinks {
		bs := sink.Batches()
		for _, b := range bs[n.seen[name]:] {
			got[name] += strings.ReplaceAll(strings.TrimSpace(string(batch.AppendTextAt(nil, b, n.at))), "\n", ", ") + ";"
		}
		n.seen[name] = len(bs)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.t.Errorf("(-want +got):\n%s", diff)
	}
}

const routeLarge = `{ outputs = { "errors" }, metrics = function(batch, ctx)
	batch:each(function(m) if m.value > 10 then m.labels.why = "large" ctx.route("errors", m) end end)
end }`

func TestRoutes(t *testing.T) {
	n := newRouteNode(t)
	n.save(routeLarge, "forward_to = [prometheus.echo.main.receiver]\nroutes {\nerrors = [prometheus.echo.errors.receiver]\n}")
	n.want(map[string]string{"main": "a 1;", "errors": `b{why="large"} 20;`}, 1, 20)
	n.want(map[string]string{"main": "b 2;", "errors": `a{why="large"} 30;`}, 30, 2)
	stale := batch.Stale()
	n.want(map[string]string{"main": "a stale, b stale;", "errors": `a{why="large"} stale, b{why="large"} stale;`}, stale, stale)
	n.want(map[string]string{"main": "a 1, b 2;"}, 1, 2)
	if got := n.node.Stats.Dropped(); len(got) > 0 {
		t.Errorf("dropped %v", got)
	}

	// If a reload changes the route of a series, the series ends at its old
	// receiver.
	n.want(map[string]string{"main": "a 1;", "errors": `b{why="large"} 20;`}, 1, 20)
	n.save(`{ outputs = { "errors" }, metrics = function(batch, ctx) ctx.route("errors", 1) end }`,
		"forward_to = [prometheus.echo.main.receiver]\nroutes {\nerrors = [prometheus.echo.errors.receiver]\n}")
	n.want(map[string]string{"main": "b 20, a stale;", "errors": `a 1, b{why="large"} stale;`}, 1, 20)
	// Another receiver, and an output that is no more.
	n.save(routeLarge, "forward_to = [prometheus.echo.main.receiver]\nroutes {\nerrors = [prometheus.echo.other.receiver]\n}")
	n.want(map[string]string{"main": "a 1, b stale;", "errors": "a stale 6999;", "other": `b{why="large"} 20;`}, 1, 20)
	n.save(`{ metrics = function(batch, ctx) end }`, "forward_to = [prometheus.echo.main.receiver]")
	n.want(map[string]string{"main": "a 1, b 20;", "other": `b{why="large"} stale 7999;`}, 1, 20)
	n.want(map[string]string{"main": "a 1, b 20;"}, 1, 20)
}

// A receiver that several ways lead to gets one batch; an empty list drops.
func TestRoutesToOneReceiver(t *testing.T) {
	n := newRouteNode(t)
	n.save(`{ outputs = { "x", "y" }, metrics = function(batch, ctx)
		local copy = batch[2]:copy()
		ctx.route("x", 1) ctx.route("y", 2)
		ctx.emit { name = "e", value = 1 }
		ctx.route("x", copy)
	end }`, "forward_to = [prometheus.echo.main.receiver]\nroutes {\nx = [prometheus.echo.main.receiver, prometheus.echo.other.receiver]\ny = []\n}")
	n.want(map[string]string{"main": "a 1, e 1, b 20;", "other": "a 1, b 20;"}, 1, 20)
	if diff := cmp.Diff(map[string]uint64{"no_receiver": 1}, n.node.Stats.Dropped()); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

// An error in each takes back what it routed.
func TestRoutesRollBack(t *testing.T) {
	n := newRouteNode(t)
	n.save(`{ outputs = { "x" }, metrics = function(batch, ctx)
		batch:each(function(m) ctx.route("x", m) ctx.route("x", { name = "e", value = 1 }) if m.name == "a" then error("no") end end)
	end }`, "forward_to = [prometheus.echo.main.receiver]\nroutes {\nx = [prometheus.echo.other.receiver]\n}")
	n.want(map[string]string{"main": "a 1;", "other": "b 20, e 1;"}, 1, 20)
}

func TestRoutesMistakes(t *testing.T) {
	n := newRouteNode(t)
	n.save(`{ outputs = { "errors", "audit" }, metrics = function(batch, ctx) end }`,
		"forward_to = [prometheus.echo.main.receiver]\nroutes {\nerrors = []\naudit = []\n}")
	r := registrytest.Lookup(t, n.cat, "a.b")
	if doc := r.Doc; doc.Args["routes.audit"] != `Receivers of output "audit"; an empty list drops it.` || !strings.Contains(doc.Example, "    audit = [") {
		t.Errorf("got manual %q, example %s", doc.Args["routes.audit"], doc.Example)
	}
	f := func(body, want string) {
		t.Helper()
		_, ds := n.decode(r, "forward_to = []\n"+body)
		var got []string
		for _, d := range ds {
			got = append(got, d.Error())
		}
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s\ngot  %q\nwant %q", body, got, want)
		}
	}
	f("", "test.alloy:1:1: missing required block routes (write: routes { errors = …, audit = … })")
	f("routes {\nerrors = []\n}", "test.alloy:3:1: missing required attribute routes.audit (write: audit = …, or [] to send to no receiver)")
	f("routes {\nerrors = []\naudti = []\n}", "test.alloy:5:1: unknown attribute routes.audti (did you mean audit?)")
	f("routes {\nerrors = 1\naudit = []\n}", "test.alloy:4:10: routes.errors: should be list(receiver)")

	wrong := func(def, want string) {
		t.Helper()
		path := n.f.Write("a/b.lua", "local weir = require \"weir\"\nreturn weir.transform {\n "+def+",\n metrics = function(batch, ctx) end }")
		n.cat.Refresh([]string{path})
		if r := registrytest.Lookup(t, n.cat, "a.b"); r.Err == nil || !strings.Contains(r.Err.Error(), "scripts/a/b.lua:3: "+want) {
			t.Errorf("%s\ngot  %v\nwant %s", def, r.Err, want)
		}
	}
	wrong(`outputs = "errors"`, `cannot use "errors" as outputs: it must be a list of names`)
	wrong(`outputs = { "a b" }`, `cannot name an output "a b": it must be an identifier`)
	wrong(`outputs = { "a", "a" }`, `cannot name two outputs "a"`)
	wrong(`outputs = { "forward_to" }`, `cannot name an output "forward_to"`)

	run := func(src, want string) {
		t.Helper()
		n.save(src, "forward_to = []")
		if err := n.c.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), n.b); err != nil {
			t.Fatal(err)
		}
		if got := n.node.Health().Message; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	run(`{ metrics = function(batch, ctx) ctx.route("errors", batch[1]) end }`, `cannot route to "errors": the definition has no outputs; write outputs = { "errors" }`)
	run(`{ series = function(s, ctx) ctx.route("errors", s) end }`, `cannot use ctx.route in series`)
}
