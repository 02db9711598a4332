package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/graph"
)

// build makes a graph of "a b c" nodes and "a>b" edges, a needing b.
func build(nodes, edges string) *graph.Graph {
	var g graph.Graph
	for _, n := range strings.Fields(nodes) {
		g.Add(n)
	}
	for _, e := range strings.Fields(edges) {
		a, b, _ := strings.Cut(e, ">")
		g.Depend(a, b)
	}
	return &g
}

func TestOrder(t *testing.T) {
	f := func(nodes, edges, want string) {
		t.Helper()
		if got := strings.Join(build(nodes, edges).Order(), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", "", "")
	f("c b a", "", "c b a") // as added
	f("a b c", "a>b b>c", "c b a")
	f("a b c d", "a>c", "b c a d") // what is free stays where it was as far as can be
	f("a b c", "a>b a>b", "b a c")
	f("a", "a>b", "b a") // added by the edge
	f("a b c d", "a>b b>a c>a", "d")
	f("a b", "a>a", "b")
}

func TestCycles(t *testing.T) {
	f := func(nodes, edges string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range build(nodes, edges).Cycles() {
			got = append(got, c.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", edges, diff)
		}
	}
	f("a b c", "a>b b>c a>c")
	f("a b", "a>a", "dependency cycle: a → a")
	f("a b c", "a>b b>c c>a", "dependency cycle: a → b → c → a")
	f("x a b c", "x>a a>b b>c c>a b>a", "dependency cycle: a → b → a") // a shortest; x only leads to it
	f("a b c d", "a>b b>a c>d d>c", "dependency cycle: a → b → a", "dependency cycle: c → d → c")
	f("a b c", "a>b b>a b>c c>b", "dependency cycle: a → b → a") // one group, one cycle
}

func TestReach(t *testing.T) {
	g := build("sink relabel scrape other file", "relabel>sink scrape>relabel scrape>file other>sink")
	f := func(got []string, want string) {
		t.Helper()
		if got := strings.Join(got, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(g.Affected("relabel"), "relabel scrape")
	f(g.Affected("sink"), "sink relabel other scrape")
	f(g.Affected("file", "other"), "other file scrape")
	f(g.Affected("nobody"), "")
	f(g.Dependants("sink"), "relabel other")
	f(g.Dependants("nobody"), "")
	if g.Len() != 5 {
		t.Errorf("%d nodes, want 5", g.Len())
	}
}

// TestRandom checks on random graphs what defines an order, a cycle and reach.
func TestRandom(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var g graph.Graph
		n := 1 + r.IntN(12)
		name := func(i int) string { return fmt.Sprint("n", i) }
		for i := range n {
			g.Add(name(i))
		}
		edge := map[[2]string]bool{}
		for range r.IntN(2 * n) {
			a, b := name(r.IntN(n)), name(r.IntN(n))
			if seed%2 == 0 && a <= b { // half of them without cycles
				continue
			}
			g.Depend(a, b)
			edge[[2]string{a, b}] = true
		}
		// The transitive closure, the slow way.
		needs := map[[2]string]bool{}
		for e := range edge {
			needs[e] = true
		}
		for k := range n {
			for i := range n {
				for j := range n {
					if needs[[2]string{name(i), name(k)}] && needs[[2]string{name(k), name(j)}] {
						needs[[2]string{name(i), name(j)}] = true
					}
				}
			}
		}
		inCycle := func(a string) bool { return needs[[2]string{a, a}] }

		order := g.Order()
		at := map[string]int{}
		for i, o := range order {
			at[o] = i
		}
		for i := range n {
			a := name(i)
			blocked := inCycle(a)
			for j := range n {
				blocked = blocked || needs[[2]string{a, name(j)}] && inCycle(name(j))
			}
			if _, in := at[a]; in == blocked {
				t.Fatalf("seed %d: %s in order is %t", seed, a, in)
			}
		}
		for e := range edge {
			a, okA := at[e[0]]
			b, okB := at[e[1]]
			if okA && okB && a < b {
				t.Fatalf("seed %d: %s comes before %s, which it needs", seed, e[0], e[1])
			}
		}
		if !slices.Equal(order, g.Order()) {
			t.Fatalf("seed %d: the order is not stable", seed)
		}
		cycles := g.Cycles()
		if cyclic := len(order) < n; cyclic != (len(cycles) > 0) {
			t.Fatalf("seed %d: %d cycles, %d of %d in order", seed, len(cycles), len(order), n)
		}
		for _, c := range cycles {
			if c.Path[0] != c.Path[len(c.Path)-1] || len(c.Path) < 2 {
				t.Fatalf("seed %d: %v is no cycle", seed, c.Path)
			}
			for i := range len(c.Path) - 1 {
				if !edge[[2]string{c.Path[i], c.Path[i+1]}] {
					t.Fatalf("seed %d: %v has no edge %d", seed, c.Path, i)
				}
			}
		}
		start := name(r.IntN(n))
		for _, a := range g.Affected(start) {
			if a != start && !needs[[2]string{a, start}] {
				t.Fatalf("seed %d: %s is not affected by %s", seed, a, start)
			}
		}
		for a := range at {
			if (a == start || needs[[2]string{a, start}]) && !slices.Contains(g.Affected(start), a) {
				t.Fatalf("seed %d: %s is affected by %s", seed, a, start)
			}
		}
	}
}
