package discovery_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// targets returns a group of a source with targets of name=value pairs.
func targets(source string, common model.LabelSet, ts ...model.LabelSet) *targetgroup.Group {
	return &targetgroup.Group{Source: source, Labels: common, Targets: ts}
}

func at(address string) model.LabelSet {
	return model.LabelSet{model.AddressLabel: model.LabelValue(address)}
}

func TestSet(t *testing.T) {
	var s discovery.Set
	f := func(g *targetgroup.Group, changed bool, want ...map[string]string) {
		t.Helper()
		if got := s.Merge(g); got != changed {
			t.Errorf("merging %v: got changed %v, want %v", g, got, changed)
		}
		if want == nil {
			want = []map[string]string{}
		}
		if diff := cmp.Diff(want, s.Targets()); diff != "" {
			t.Errorf("merging %v (-want +got):\n%s", g, diff)
		}
	}
	type m = map[string]string
	common := model.LabelSet{"job": "j", "zone": "common"}
	a := model.LabelSet{model.AddressLabel: "a:1", "zone": "own"}

	f(targets("none", nil), false)
	f(targets("two", common, at("b:1"), a), true,
		m{"__address__": "a:1", "job": "j", "zone": "own"}, m{"__address__": "b:1", "job": "j", "zone": "common"})
	// The same targets in another order: no change.
	f(targets("two", common, a, at("b:1")), false,
		m{"__address__": "a:1", "job": "j", "zone": "own"}, m{"__address__": "b:1", "job": "j", "zone": "common"})
	// The same labels from another level are the same target.
	f(targets("two", nil, model.LabelSet{model.AddressLabel: "b:1", "job": "j", "zone": "common"},
		model.LabelSet{model.AddressLabel: "a:1", "zone": "own", "job": "j"}), false,
		m{"__address__": "a:1", "job": "j", "zone": "own"}, m{"__address__": "b:1", "job": "j", "zone": "common"})
	// Swapped values are a change.
	f(targets("two", nil, model.LabelSet{model.AddressLabel: "a:1", "job": "own", "zone": "j"}), true,
		m{"__address__": "a:1", "job": "own", "zone": "j"})
	f(targets("one", nil, at("z:1"), at("z:1")), true,
		m{"__address__": "z:1"}, m{"__address__": "z:1"}, m{"__address__": "a:1", "job": "own", "zone": "j"})
	f(targets("one", nil, at("z:1")), true, m{"__address__": "z:1"}, m{"__address__": "a:1", "job": "own", "zone": "j"})
	// The address may be a label of the group.
	f(targets("two", at("g:1"), model.LabelSet{"x": "1"}), true,
		m{"__address__": "z:1"}, m{"__address__": "g:1", "x": "1"})
	f(targets("two", nil), true, m{"__address__": "z:1"})
	f(targets("two", nil), false, m{"__address__": "z:1"})
}

func TestSetRounds(t *testing.T) {
	var s discovery.Set
	s.Begin()
	s.Merge(targets("a", nil, at("a:1")))
	s.Merge(targets("b", nil, at("b:1")))
	s.Begin()
	if s.Merge(targets("b", nil, at("b:1"))) {
		t.Error("the same in another round is a change")
	}
	if !s.Prune() || s.Prune() {
		t.Error("want one change from dropping what is of the round before")
	}
	if diff := cmp.Diff([]map[string]string{{"__address__": "b:1"}}, s.Targets()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Retain(func(string) bool { return true }) || !s.Retain(func(string) bool { return false }) || len(s.Targets()) != 0 {
		t.Error("Retain keeps or reports something else than asked")
	}
}

// TestSetKeepsMaps: an unchanged target is the same map, whatever else changes.
// The reference is a set without a cache.
func TestSetKeepsMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s discovery.Set
	known := map[string]uintptr{}
	kept := 0
	for range 200 {
		var fresh discovery.Set
		for source := range 3 {
			g := targets(fmt.Sprint(source), model.LabelSet{"source": model.LabelValue(fmt.Sprint(source)), "g": model.LabelValue(fmt.Sprint(r.IntN(2)))})
			for i := range 20 {
				if r.IntN(4) > 0 {
					l := at(fmt.Sprintf("h%d:1", i))
					l["v"] = model.LabelValue(fmt.Sprint(r.IntN(3)))
					g.Targets = append(g.Targets, l)
				}
			}
			r.Shuffle(len(g.Targets), func(i, j int) { g.Targets[i], g.Targets[j] = g.Targets[j], g.Targets[i] })
			before := s.Targets()
			changed := s.Merge(g)
			if got := !reflect.DeepEqual(before, s.Targets()); got != changed {
				t.Fatalf("got changed %v, but that is %v", changed, got)
			}
			fresh.Merge(g)
		}
		if diff := cmp.Diff(fresh.Targets(), s.Targets()); diff != "" {
			t.Fatalf("(-fresh +got):\n%s", diff)
		}
		now := map[string]uintptr{}
		for _, l := range s.Targets() {
			now[fmt.Sprint(l)] = reflect.ValueOf(l).Pointer()
		}
		for key, p := range now {
			if before, ok := known[key]; ok {
				kept++
				if before != p {
					t.Fatalf("%s stayed and is another map", key)
				}
			}
		}
		known = now
	}
	if kept < 1000 {
		t.Errorf("only %d targets stayed: the test shows nothing", kept)
	}
}
