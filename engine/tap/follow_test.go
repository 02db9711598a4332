package tap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/tap"
)

// explainer returns the same steps for all records.
type explainer struct {
	steps []component.Step
	err   error
}

func (e explainer) Explain(context.Context, flow.Batches) ([]component.Step, error) {
	return e.steps, e.err
}

// followed is a Follower of records of a graph.
type followed struct {
	*tap.Follower
	t     *testing.T
	nodes map[string]tap.Followed
}

// newFollowed returns a Follower. Each node is its name and the names of those that it
// sends to.
func newFollowed(t *testing.T, where string, nodes ...[]string) *followed {
	progs, err := expr.CompileEither(where, expr.Bool, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{tap.NewFollower(&progs), t, map[string]tap.Followed{}}
	for _, n := range nodes {
		f.nodes[n[0]] = tap.Followed{ID: n[0], SendsTo: n[1:]}
	}
	f.Follower.Nodes(f.nodes)
	return f
}

// explain sets how a node explains.
func (f *followed) explain(node string, err error, steps ...component.Step) {
	n := f.nodes[node]
	n.Explainer = explainer{steps, err}
	f.nodes[node] = n
}

// call adds a call of a node, which sends out.
func (f *followed) call(node string, in, out flow.Batches, err error) {
	f.Add(node, []flow.Tapped{{Time: time.Unix(7, 0), In: in, Out: out, Err: err}}, 0)
}

// want compares the paths.
func (f *followed) want(want string) {
	f.t.Helper()
	var b strings.Builder
	for _, p := range f.Paths(f.t.Context(), time.Unix(8, 0), 10) {
		fmt.Fprintln(&b, p.Text)
		for _, n := range p.Nodes {
			fmt.Fprintf(&b, "  %s %s %q", n.Node, n.Result, n.From)
			if n.Reason != "" {
				fmt.Fprintf(&b, " (%s)", n.Reason)
			}
			for _, c := range n.Changes {
				fmt.Fprintf(&b, " %s", c)
			}
			b.WriteByte('\n')
			for _, s := range n.Steps {
				fmt.Fprintf(&b, "    %s %d %s (%s) dropped=%t depends=%q later=%t: %s\n",
					s.Kind, s.Index, s.Name, s.Detail, s.Dropped, s.Depends, s.Later, strings.Join(s.Changes, ", "))
			}
		}
	}
	if b.String() != want {
		f.t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

var none flow.Batches

// A record that several nodes receive is followed to each of them, also in a module, and
// is one path.
func TestFollowFanOut(t *testing.T) {
	f := newFollowed(t, `name == "b"`, []string{"scrape", "pipe.one/first", "second"}, []string{"pipe.one/first", "sink"}, []string{"second", "sink"}, []string{"sink"})
	sent := batches(t, "a 1\nb 2\n")
	changed, dropped := batches(t, "a 1\nb{x=\"y\"} 2\n"), batches(t, "a 1\n")
	f.explain("second", nil, component.Step{Kind: "rule", Index: 2, Name: "drop", Detail: "regex"})
	f.call("scrape", none, sent, nil)
	f.call("pipe.one/first", sent, changed, nil)
	f.call("second", sent, dropped, nil)
	f.call("sink", changed, none, nil)
	f.call("sink", dropped, none, nil)
	f.want(`b 2 5
  scrape sent ""
  pipe.one/first changed "scrape" x="y" added
  sink accepted "pipe.one/first"
  second dropped "scrape"
    rule 2 drop (regex) dropped=true depends="" later=false: 
`)
	f.want("") // each record once
}

// A record that matches only after a node is followed from its origin.
func TestFollowFromOrigin(t *testing.T) {
	f := newFollowed(t, `name == "c"`, []string{"scrape", "set"}, []string{"set", "sink"}, []string{"sink"})
	sent, changed := batches(t, "b{x=\"y\"} 2\n"), batches(t, "c{x=\"y\"} 2\n")
	f.call("scrape", none, sent, nil)
	f.call("set", sent, changed, nil)
	f.call("sink", changed, none, errors.New("cannot send to http://user:secret@host/: no"))
	f.want(`b{x="y"} 2 5
  scrape sent ""
  set changed "scrape" __name__="b" → "c"
  sink refused "set" (cannot send to http://user:(hidden)@host/: no)
`)
	f = newFollowed(t, `name == "c"`, []string{"sum", "sink"}, []string{"sink"})
	f.call("sum", batches(t, "a 1\n"), batches(t, "a 1\nc 5\n"), nil)
	f.want("c 5 5\n  sum added \"\"\n")
}

// Secrets are masked in all parts of a path.
func TestFollowMasks(t *testing.T) {
	f := newFollowed(t, `name == "b"`, []string{"set", "sink"}, []string{"sink"})
	f.Mask([]string{"topsecret"})
	in, out, added := batches(t, "b{x=\"topsecret\"} 2\n"), batches(t, "b{x=\"a topsecret\"} 2\n"), batches(t, "c{x=\"topsecret\"} 2\n")
	f.explain("set", nil, component.Step{Kind: "line", Name: "a.lua:1", Detail: `x = "topsecret"`, After: out, Added: added, Also: []string{"topsecret too"}})
	f.call("set", in, out, nil)
	f.call("sink", out, none, errors.New("topsecret was refused"))
	f.want(`b{x="(secret)"} 2 5
  set changed "" x="(secret)" → "a (secret)"
    line 0 a.lua:1 (x = "(secret)") dropped=false depends="" later=false: x="(secret)" → "a (secret)", added c{x="(secret)"} 2 5, (secret) too
  sink refused "set" ((secret) was refused)
`)
}

// Steps whose result is unknown are named if they explain the result.
func TestFollowDepends(t *testing.T) {
	in, changed := batches(t, "b 2\n"), batches(t, "b{x=\"y\"} 2\n")
	rate := component.Step{Kind: "stage", Index: 1, Name: "limit", Depends: "the rate", After: in}
	later := component.Step{Kind: "stage", Index: 2, Name: "multiline", Depends: "the lines", Later: true, After: in}
	label := component.Step{Kind: "stage", Index: 3, Name: "labels", After: changed}
	drop := component.Step{Kind: "stage", Index: 4, Name: "drop"}
	f := func(out flow.Batches, want string, err error, steps ...component.Step) {
		t.Helper()
		f := newFollowed(t, `name == "b"`, []string{"process", "sink"}, []string{"sink"})
		f.explain("process", err, steps...)
		f.call("process", in, out, nil)
		f.want("b 2 5\n" + want)
	}
	const missing = "  process missing \"\" "
	const limit = `    stage 1 limit () dropped=true depends="the rate" later=false: ` + "\n"
	const labels = `    stage 3 labels () dropped=false depends="" later=false: x="y" added` + "\n"
	const drops = `    stage 4 drop () dropped=true depends="" later=false: ` + "\n"
	// The only step that can have dropped it. The steps after it did not run.
	f(none, "  process dropped \"\"\n"+limit, nil, rate, label)
	// It has been dropped in any case.
	f(none, "  process dropped \"\"\n"+labels+drops, nil, label, drop)
	// The only step that can keep it.
	f(none, missing+"(a step keeps the record and may send it later)\n"+
		`    stage 2 multiline () dropped=false depends="the lines" later=true: `+"\n"+labels, nil, later, label)
	// Two steps.
	f(none, missing+"(the node did not send it in this call: a step dropped it, or sends it later)\n"+
		`    stage 1 limit () dropped=false depends="the rate" later=false: `+"\n"+
		`    stage 2 multiline () dropped=false depends="the lines" later=true: `+"\n", nil, rate, later)
	// All of them let it pass.
	f(changed, "  process changed \"\" x=\"y\" added\n"+labels, nil, rate, label)
	// The steps do not explain the result.
	const other = "(cannot name the steps of the node: for the record alone, they have another result now. " +
		"The result depends on other records or a state, or the arguments have changed)"
	f(none, missing+other+"\n", nil, label)
	f(batches(t, "b{z=\"y\"} 2\n"), "  process changed \"\" "+other+" z=\"y\" added\n", nil, label)
	f(batches(t, "b{z=\"y\"} 2\n"), "  process changed \"\" (the result of a step depends on other records) z=\"y\" added\n"+
		`    stage 1 limit () dropped=false depends="the rate" later=false: `+"\n"+labels, nil, rate, label)
	// They are unknown.
	f(none, missing+"(cannot name the steps of the node: no answer from http://host/)\n", errors.New("no answer from http://host/"))
	// An error of a record that did not change.
	f(in, "  process unchanged \"\"\n"+`    error 0 a.lua:3 (oh no) dropped=false depends="" later=false: `+"\n", nil,
		component.Step{Kind: component.StepError, Name: "a.lua:3", Detail: "oh no", After: in})
	// A route.
	f(in, "  process unchanged \"\"\n"+`    route 1 large () dropped=false depends="" later=false: `+"\n", nil,
		component.Step{Kind: component.StepRoute, Index: 1, Name: "large", After: in})
	f(in, "  process unchanged \"\"\n", nil, label)
}

// A record that a step replaces with one that it adds is changed.
func TestFollowAdded(t *testing.T) {
	f := newFollowed(t, `name == "b"`, []string{"script", "sink"}, []string{"sink"})
	in, out := batches(t, "b{x=\"y\"} 2\n"), batches(t, "c{x=\"y\"} 2\n")
	f.explain("script", nil,
		component.Step{Kind: "line", Name: "a.lua:1", After: in, Added: out},
		component.Step{Kind: "line", Name: "a.lua:2", After: flow.Batches{Metrics: []*batch.Metrics{{}}}})
	f.call("script", in, out, nil)
	f.want(`b{x="y"} 2 5
  script changed "" __name__="b" → "c"
    line 0 a.lua:1 () dropped=false depends="" later=false: added c{x="y"} 2 5
    line 0 a.lua:2 () dropped=true depends="" later=false: 
`)
}

// A node that begins to drop a series ends it: this is not a record to be explained.
func TestFollowStaleness(t *testing.T) {
	f := newFollowed(t, `name == "up"`, []string{"a", "b"}, []string{"b"})
	parse := func(text string) flow.Batches {
		m, err := batch.ParseText(text, batch.TextOptions{T: 5})
		if err != nil {
			t.Fatal(err)
		}
		return flow.Batches{Metrics: []*batch.Metrics{m}}
	}
	in, out := parse("up 1\n"), parse("up{x=\"1\"} stale\n")
	f.call("a", in, out, nil)
	f.call("b", out, none, nil)
	f.want("up 1 5\n  a missing \"\" (the node did not send it in this call: it dropped it, or sends it later)\n")
}

// A record that was on its way when the nodes were first observed has no path, because its
// path would be incomplete.
func TestFollowFromBegin(t *testing.T) {
	f := newFollowed(t, `name == "b"`, []string{"scrape", "set"}, []string{"set", "sink"}, []string{"sink"})
	for _, node := range []string{"set", "sink"} {
		n := f.nodes[node]
		n.Receives = true
		f.nodes[node] = n
	}
	at := func(node string, began, ended time.Duration, in, out flow.Batches) {
		o := flow.Tapped{Time: time.Unix(5, 0).Add(ended), In: in, Out: out}
		if in.Len() > 0 {
			o.Began = time.Unix(5, 0).Add(began)
		}
		f.Add(node, []flow.Tapped{o}, 0)
	}
	f.Begin(time.Unix(5, 0))
	// The tap of set came too late.
	early := batches(t, "b{at=\"early\"} 2\n")
	at("scrape", 0, -time.Millisecond, none, early)
	at("sink", 2*time.Millisecond, 3*time.Millisecond, early, none)
	// The call of set began before its tap: what it sent seems to begin there.
	sent := batches(t, "b{at=\"call\"} 2\n")
	at("set", 0, time.Millisecond, none, sent)
	at("sink", 2*time.Millisecond, 3*time.Millisecond, sent, none)
	f.want("")
	// Everything after that has a path.
	late, own := batches(t, "b{at=\"late\"} 2\n"), batches(t, "b{at=\"own\"} 2\n")
	at("scrape", 0, 0, none, late)
	at("set", time.Millisecond, 2*time.Millisecond, late, late)
	at("set", 0, 2*time.Second, none, own)
	f.want(`b{at="late"} 2 5
  scrape sent ""
  set unchanged "scrape"
b{at="own"} 2 5
  set sent ""
`)
}
