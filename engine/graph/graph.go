// Package graph is a directed acyclic graph of names. It returns the order in
// which to build nodes, the dependants of a node, and the path of a cycle. It
// knows nothing about the nodes.
//
// The order is stable: where the edges allow several orders, nodes are in the
// order in which they were added, so that equal configs behave equally.
package graph

import (
	"slices"
	"strings"
)

// Graph is a graph of names. The zero value is an empty graph. Concurrent reads
// are safe, but not while it is being changed.
type Graph struct {
	index map[string]int
	nodes []node
}

type node struct {
	name string
	deps []int // in the order they were added
	uses []int // nodes with this node in deps
}

// CycleError is a cycle.
type CycleError struct {
	// Path leads from a name to itself: a, b, a. It begins with the name in the
	// cycle that was added first.
	Path []string
}

func (e *CycleError) Error() string { return "dependency cycle: " + strings.Join(e.Path, " → ") }

// Add adds a node. If it exists, nothing changes.
func (g *Graph) Add(name string) { g.add(name) }

func (g *Graph) add(name string) int {
	if i, ok := g.index[name]; ok {
		return i
	}
	if g.index == nil {
		g.index = map[string]int{}
	}
	g.index[name] = len(g.nodes)
	g.nodes = append(g.nodes, node{name: name})
	return len(g.nodes) - 1
}

// Depend records that a node must be built after another. Missing nodes are
// added.
func (g *Graph) Depend(name, on string) {
	a, b := g.add(name), g.add(on)
	if !slices.Contains(g.nodes[a].deps, b) {
		g.nodes[a].deps = append(g.nodes[a].deps, b)
		g.nodes[b].uses = append(g.nodes[b].uses, a)
	}
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Dependants returns the nodes that directly depend on a node, in the order of
// the calls of Depend.
func (g *Graph) Dependants(name string) (out []string) {
	if i, ok := g.index[name]; ok {
		for _, j := range g.nodes[i].uses {
			out = append(out, g.nodes[j].name)
		}
	}
	return out
}

// Order returns all nodes, each after its dependencies, and otherwise in the
// order in which they were added. If there are cycles, it returns the nodes
// that are neither in a cycle nor depend on one.
func (g *Graph) Order() []string { return g.order(nil) }

// Affected returns the given nodes and all direct and indirect dependants, in
// the order of Order. Unknown names are ignored.
func (g *Graph) Affected(names ...string) []string {
	return g.order(g.reach(names, func(n node) []int { return n.uses }))
}

func (g *Graph) reach(names []string, edges func(node) []int) map[int]bool {
	in := map[int]bool{}
	var todo []int
	for _, name := range names {
		if i, ok := g.index[name]; ok && !in[i] {
			in[i] = true
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range edges(g.nodes[i]) {
			if !in[j] {
				in[j] = true
				todo = append(todo, j)
			}
		}
	}
	return in
}

// order returns the nodes in only (nil: all) in topological order.
func (g *Graph) order(only map[int]bool) []string {
	missing := make([]int, len(g.nodes))
	var ready intHeap
	for i, n := range g.nodes {
		missing[i] = len(n.deps)
		if missing[i] == 0 {
			ready.push(i)
		}
	}
	var out []string
	for len(ready) > 0 {
		i := ready.pop()
		if only == nil || only[i] {
			out = append(out, g.nodes[i].name)
		}
		for _, j := range g.nodes[i].uses {
			if missing[j]--; missing[j] == 0 {
				ready.push(j)
			}
		}
	}
	return out
}

// Cycles returns a cycle for each group of nodes that depend on each other: a
// shortest cycle through the group's first node. It returns nil if there are
// none.
func (g *Graph) Cycles() (errs []*CycleError) {
	done := make([]bool, len(g.nodes)) // in a group that was already reported
	for i := range g.nodes {
		if done[i] {
			continue
		}
		path := g.cycle(i)
		if path == nil {
			continue
		}
		// The group: nodes that i depends on and that depend on i.
		needs := g.reach([]string{g.nodes[i].name}, func(n node) []int { return n.deps })
		for j := range g.reach([]string{g.nodes[i].name}, func(n node) []int { return n.uses }) {
			if needs[j] {
				done[j] = true
			}
		}
		errs = append(errs, &CycleError{path})
	}
	return errs
}

// cycle returns a shortest path from a node to itself, or nil if there is none.
func (g *Graph) cycle(start int) []string {
	from := map[int]int{}
	todo := []int{start}
	for len(todo) > 0 {
		i := todo[0]
		todo = todo[1:]
		for _, j := range g.nodes[i].deps {
			if j == start {
				path := []string{g.nodes[start].name}
				for ; i != start; i = from[i] {
					path = append(path, g.nodes[i].name)
				}
				path = append(path, g.nodes[start].name)
				slices.Reverse(path)
				return path
			}
			if _, seen := from[j]; !seen {
				from[j] = i
				todo = append(todo, j)
			}
		}
	}
	return nil
}
