// Package flowchart draws nodes and what flows between them, from left to
// right: as SVG with a layered layout of its own, and as DOT for Graphviz.
//
// Nodes whose ID is outer/inner are drawn inside of a frame for outer. Equal
// charts give equal bytes. It is not a general graph drawer: boxes have two or
// three lines of text, edges have no labels.
package flowchart

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Chart is what to draw. Edges of nodes that are not there are left out.
type Chart struct {
	Nodes []Node // IDs are unique
	Edges []Edge
}

// Node is a box, or a frame when others are inside of it.
type Node struct {
	ID   string // a/b is inside of a
	Name string // the small line above
	// Label is the line that is read first; when it is empty Name is that.
	Label string
	Class string // CSS class: the health
	Tip   string // shown when the pointer is on it; "" for ID
	Href  string // "" for no link
	// Rates is the third line, on a chart that has one: see SVGOptions.
	Rates string
}

// Edge is an arrow.
type Edge struct {
	From, To string
	// Reference is whether only a value is referred to, and nothing flows.
	Reference bool
}

// Of returns the chart of a graph: where samples flow, and what refers to what.
// Services are drawn when they refer to something.
func Of(nodes, services []service.Info) *Chart {
	c := &Chart{}
	for _, s := range services {
		if len(s.DependsOn) > 0 {
			nodes = append(slices.Clip(nodes), s)
		}
	}
	framed := map[string]bool{}
	for _, i := range nodes {
		for id := parent(i.ID); id != ""; id = parent(id) {
			framed[id] = true
		}
	}
	for _, i := range nodes {
		c.Nodes = append(c.Nodes, newNode(i))
		for _, id := range i.SendsTo {
			c.Edges = append(c.Edges, Edge{From: i.ID, To: id})
		}
		for _, id := range i.DependsOn {
			// What a module refers to is used by what is inside of it.
			if !slices.Contains(i.SendsTo, id) && !framed[i.ID] {
				c.Edges = append(c.Edges, Edge{From: id, To: i.ID, Reference: true})
			}
		}
	}
	return c
}

func newNode(i service.Info) Node {
	n := Node{ID: i.ID, Name: i.Name, Class: i.Health.State.String(), Tip: i.ID}
	own := i.ID[strings.LastIndexByte(i.ID, '/')+1:]
	if label, ok := strings.CutPrefix(own, i.Name+"."); ok {
		n.Label = label
	}
	if i.Position != "" {
		n.Tip += "\n" + i.Position
	}
	if i.Health.State > component.Healthy && i.Health.Message != "" {
		n.Tip += "\n" + i.Health.State.String() + ": " + i.Health.Message
	}
	return n
}

// parent returns the ID of the frame around an ID, "" for none.
func parent(id string) string {
	i := strings.LastIndexByte(id, '/')
	return id[:max(i, 0)]
}

// childOf returns which child of a frame ("" for the whole chart) an ID is, or is
// inside of; ok is false when it is not inside of the frame.
func childOf(frame, id string) (child string, ok bool) {
	rest := id
	if frame != "" {
		if rest, ok = strings.CutPrefix(id, frame+"/"); !ok {
			return "", false
		}
	}
	first, _, _ := strings.Cut(rest, "/")
	return id[:len(id)-len(rest)+len(first)], true
}
