package tap_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/tap"
)

// relabels adds a label to targets, and drops those with the label drop.
type relabels struct{ name, value string }

func (r relabels) ExplainTarget(x tap.Target) component.TargetResult {
	if x["drop"] != "" {
		return component.TargetResult{Result: "dropped", Steps: []component.Step{{Kind: "rule", Index: 1, Name: "drop"}}}
	}
	out := maps.Clone(x)
	out[r.name] = r.value
	return component.TargetResult{Result: "changed", After: out, Steps: []component.Step{
		{Kind: "rule", Index: 2, Name: "replace", Detail: r.value, After: component.TargetRecord(out)},
	}}
}

// scrapes cannot scrape targets.
type scrapes struct{}

func (scrapes) ExplainTarget(x tap.Target) component.TargetResult {
	return component.TargetResult{Result: "down", Reason: x["address"] + " with topsecret"}
}

// TestTargets checks the ways of targets through a graph with a module.
func TestTargets(t *testing.T) {
	a, b, dropped := tap.Target{"address": "a"}, tap.Target{"address": "b", "key": "topsecret"}, tap.Target{"address": "c", "drop": "1"}
	changed := func(x tap.Target, name string) tap.Target {
		out := maps.Clone(x)
		out[name] = "v"
		return out
	}
	nodes := []tap.TargetNode{
		{ID: "discovery.one", Out: []tap.Target{a, b, dropped}},
		{ID: "discovery.other", Out: []tap.Target{a}}, // the same target, that nobody uses
		{ID: "pipe.x/relabel", In: []tap.Target{a, b, dropped}, Out: []tap.Target{changed(a, "x"), changed(b, "x")}, Explainer: relabels{"x", "v"}},
		{ID: "pipe.x/again", In: []tap.Target{changed(a, "x"), changed(b, "x")}, Out: []tap.Target{changed(a, "x")}},
		{ID: "scrape.one", In: []tap.Target{a, changed(b, "x"), {"address": "config"}}, Explainer: scrapes{}},
		{ID: "sd.file", In: []tap.Target{a}},
	}
	dependsOn := map[string][]string{
		"pipe.x": {"discovery.one"}, "pipe.x/again": {"pipe.x/relabel"}, "scrape.one": {"discovery.one", "pipe.x"}, "sd.file": {"discovery.one"},
	}
	f := func(node, where string, limit int, want string) {
		t.Helper()
		prog, err := expr.Compile(where, expr.Bool, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, p := range tap.NewTargets(&expr.Programs{Metrics: prog}, []string{"topsecret"}, nodes, dependsOn).Paths(t.Context(), node, limit) {
			fmt.Fprintln(&got, p.Text)
			for _, n := range p.Nodes {
				fmt.Fprintf(&got, "  %s %s from %q: %s %s\n", n.Node, n.Result, n.From, n.Reason, strings.Join(n.Changes, " "))
				for _, s := range n.Steps {
					fmt.Fprintf(&got, "    %s %d %s (%s) dropped=%t: %s\n", s.Kind, s.Index, s.Name, s.Detail, s.Dropped, strings.Join(s.Changes, " "))
				}
			}
		}
		if got.String() != want {
			t.Errorf("%s: got\n%swant\n%s", where, got.String(), want)
		}
	}
	ofA := `{address="a"}
  discovery.one discovered from "":  
  pipe.x/relabel changed from "discovery.one":  x="v" added
    rule 2 replace (v) dropped=false: x="v" added
  pipe.x/again unchanged from "pipe.x/relabel": no other node has this target in its arguments 
  scrape.one down from "discovery.one": a with (secret) 
  sd.file received from "discovery.one":  
`
	ofOther := `{address="a"}
  discovery.other discovered from "": no other node has this target in its arguments 
`
	ofB := `{address="b",key="(secret)"}
  discovery.one discovered from "":  
  pipe.x/relabel changed from "discovery.one":  x="v" added
    rule 2 replace (v) dropped=false: x="v" added
  pipe.x/again missing from "pipe.x/relabel": the node does not export it: it dropped or changed it 
  scrape.one down from "pipe.x/relabel": b with (secret) 
`
	ofDropped := `{address="c",drop="1"}
  discovery.one discovered from "":  
  pipe.x/relabel dropped from "discovery.one":  
    rule 1 drop () dropped=true: 
`
	ofConfig := `{address="config"}
  scrape.one down from "": config with (secret) 
`
	f("*", `labels.address == "a"`, 10, ofA+ofOther)
	f("*", `labels.address == "b"`, 10, ofB)
	f("*", `labels.address == "c"`, 10, ofDropped)
	f("*", `labels.address == "config"`, 10, ofConfig)
	f("*", "true", 10, ofA+ofB+ofDropped+ofOther+ofConfig)
	f("*", "true", 2, ofA+ofB)
	f("*", `labels.address == "none"`, 10, "")
	// A label that a rule has added, and a node in the middle.
	f("*", `labels.x == "v" && labels.address == "b"`, 10, ofB)
	f("pipe.x/again", `labels.address == "a"`, 10, ofA)
	f("discovery.other", "true", 10, ofOther)
}
