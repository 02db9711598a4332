package relabel_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
	"github.com/weir-run/weir/natives/discovery/relabel"
)

type target = map[string]string

// decode returns the arguments of a block.
func decode(t testing.TB, body string) *relabel.Arguments {
	t.Helper()
	args, mistakes := discoverytest.Decode(t, relabel.Registration(), body)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return args.(*relabel.Arguments)
}

func output(n *componenttest.Node) []target { return n.Exports().(relabel.Exports).Output }

const rules = `
targets = []
rule {
	action        = "drop"
	source_labels = ["env"]
	regex         = "test"
}
rule {
	action = "labelmap"
	regex  = "__meta_(.+)"
}
rule {
	source_labels = ["__address__"]
	regex         = "([^:]+):.*"
	target_label  = "host"
}
rule {
	action = "labeldrop"
	regex  = "secret"
}`

func TestRelabel(t *testing.T) {
	n := componenttest.New(t, "discovery.relabel.default")
	a := decode(t, rules)
	a.Targets = []target{
		{"__address__": "b:1", "env": "prod", "__meta_rack": "r1", "secret": "s"},
		{"__address__": "a:1", "env": "test"},
		{"__address__": "a:2"},
		{"__address__": "a:2"},
	}
	given := fmt.Sprint(a.Targets)
	c := n.Build(t, relabel.Registration(), a)
	want := []target{
		{"__address__": "b:1", "env": "prod", "__meta_rack": "r1", "rack": "r1", "host": "b"},
		{"__address__": "a:2", "host": "a"},
		{"__address__": "a:2", "host": "a"},
	}
	if diff := cmp.Diff(want, output(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(rule.Rules(a.Rules), n.Exports().(relabel.Exports).Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(a.Targets); got != given {
		t.Errorf("the targets given were written to: %s", got)
	}
	if h := n.Health(); h.State != component.Healthy || h.Message != "kept 3 of 4 targets" {
		t.Errorf("got health %+v", h)
	}
	if got := c.(component.Debugger).DebugInfo(); got != (relabel.Info{Targets: 4, Kept: 3}) {
		t.Errorf("got debug info %+v", got)
	}
	n.Run(t, c)
}

// The rules that change or drop a target are named.
func TestExplainTarget(t *testing.T) {
	n := componenttest.New(t, "discovery.relabel.default")
	c := n.Build(t, relabel.Registration(), decode(t, rules)).(component.TargetExplainer)
	f := func(in target, result string, after target, steps ...string) {
		t.Helper()
		got := c.ExplainTarget(in)
		var names []string
		for _, s := range got.Steps {
			names = append(names, fmt.Sprintf("%s %d %s %d", s.Kind, s.Index, s.Name, s.After.Len()))
		}
		if got.Result != result || !reflect.DeepEqual(got.After, after) || !slices.Equal(names, steps) {
			t.Errorf("%v: got %s %v by %q", in, got.Result, got.After, names)
		}
	}
	f(target{"__address__": "a:1", "env": "test", "__meta_x": "y"}, "dropped", nil, "rule 1 drop 0")
	f(target{"__address__": "a:1", "__meta_x": "y", "secret": "s"}, "changed", target{"__address__": "a:1", "__meta_x": "y", "x": "y", "host": "a"},
		"rule 2 labelmap 1", "rule 3 replace 1", "rule 4 labeldrop 1")
	f(target{"env": "prod"}, "unchanged", target{"env": "prod"})
	f(target{"secret": "s"}, "changed", target{}, "rule 4 labeldrop 1")
}

// TestKeepsMaps: unchanged targets are relabelled once and are the same maps in
// every output; other rules relabel all of them again.
func TestKeepsMaps(t *testing.T) {
	n := componenttest.New(t, "discovery.relabel.default")
	a := decode(t, rules)
	for i := range 100 {
		a.Targets = append(a.Targets, target{"__address__": fmt.Sprintf("h%d:1", i)})
	}
	up := n.Build(t, relabel.Registration(), a).(component.Updater)
	before := output(n)
	b := decode(t, rules)
	b.Targets = slices.Clone(a.Targets)
	b.Targets[7] = target{"__address__": "new:1"}
	if err := up.Update(b); err != nil {
		t.Fatal(err)
	}
	after := output(n)
	for i := range after {
		if same := reflect.ValueOf(before[i]).Pointer() == reflect.ValueOf(after[i]).Pointer(); same != (i != 7) {
			t.Errorf("target %d: is the same map %v", i, same)
		}
	}
	if diff := cmp.Diff(target{"__address__": "new:1", "host": "new"}, after[7]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := decode(t, "targets = []")
	none.Targets = b.Targets
	if err := up.Update(none); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.Targets, output(n)); diff != "" {
		t.Errorf("without rules (-want +got):\n%s", diff)
	}
	if reflect.ValueOf(output(n)[0]).Pointer() != reflect.ValueOf(b.Targets[0]).Pointer() {
		t.Error("what no rule changes is copied")
	}
}

// TestSameAsPrometheus compares random rules on random targets with Prometheus's
// own relabelling.
func TestSameAsPrometheus(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"__address__", "a", "b", "__meta_c", "__tmp", "d.e"}
	values := []string{"", "a", "b", "A", "a;b", "x:1", "ünï"}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	n := componenttest.New(t, "discovery.relabel.default")
	up := n.Build(t, relabel.Registration(), &relabel.Arguments{}).(component.Updater)
	dropped, changed := 0, 0
	for range 2000 {
		a := &relabel.Arguments{}
		for range r.IntN(4) {
			ru := new(rule.Rule)
			ru.SetToDefault()
			ru.Action = rule.Action(pick([]string{"replace", "keep", "drop", "hashmod", "labelmap", "labeldrop", "labelkeep", "lowercase", "uppercase", "keepequal", "dropequal"}))
			if ru.Action != "labeldrop" && ru.Action != "labelkeep" {
				ru.SourceLabels = []string{pick(names), pick(names)}[:1+r.IntN(2)]
				ru.TargetLabel = pick(names[:5])
			}
			if ru.Action == "hashmod" {
				ru.Modulus = 4
			}
			if ru.Action != "keepequal" && ru.Action != "dropequal" {
				ru.Regex = rule.Regexp(pick([]string{"(.*)", "a|x:1", "__meta_(.*)", ".+", "", "[a-z_]+", "(a);(.*)"}))
			}
			if ru.Validate() == nil {
				a.Rules = append(a.Rules, ru)
			}
		}
		for range 5 {
			tg := target{}
			for range r.IntN(5) {
				tg[pick(names)] = pick(values)
			}
			a.Targets = append(a.Targets, tg)
		}
		if err := up.Update(a); err != nil {
			t.Fatal(err)
		}
		want := []target{}
		for _, tg := range a.Targets {
			b := labels.NewBuilder(labels.FromMap(tg))
			if !upstream.ProcessBuilder(b, rule.Configs(a.Rules)...) {
				dropped++
				continue
			}
			w := b.Labels().Map()
			if len(a.Rules) == 0 {
				w = tg
			} else if !reflect.DeepEqual(w, tg) {
				changed++
			}
			want = append(want, w)
		}
		if diff := cmp.Diff(want, output(n)); diff != "" {
			t.Fatalf("rules %+v\ntargets %v\n(-Prometheus +got):\n%s", a.Rules, a.Targets, diff)
		}
	}
	if dropped < 500 || changed < 500 {
		t.Errorf("only %d dropped and %d changed: the test shows little", dropped, changed)
	}
}

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, relabel.Registration(), body, want...)
	}
	f(`targets = [{ "__address__" = "a:1" }]`)
	f(``, "missing required attribute targets")
	f(`targets = ["a:1"]`, "c.alloy:2:")
	f("targets = []\nrule {\n\taction = \"remove\"\n}", `unknown relabel action "remove"`)
	f("targets = []\nforward_to = []", "unknown attribute forward_to")
}
