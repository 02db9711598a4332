// Package flowchart draws nodes and the data flow between them, from left to
// right: as SVG with its own layered layout, as DOT for Graphviz, for Mermaid, and as data.
//
// Nodes whose ID is outer/inner are drawn inside a frame for outer. Equal
// charts give equal bytes. It is not a general graph drawer: boxes have two or
// three lines of text, and edges have no labels.
package flowchart

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Chart is the graph to draw. Edges of missing nodes are ignored.
type Chart struct {
	Nodes []Node // IDs are unique
	Edges []Edge
}

// Node is a box, or a frame if it contains other nodes.
type Node struct {
	ID   string // a/b is inside a
	Name string // the small line above
	// Label is the main line. If it is empty, Name is the main line.
	Label string
	Class string // CSS class: the health
	Tip   string // tooltip; "" for ID
	Href  string // "" if there is no link
	// Rates is the third line, if the chart has one: see SVGOptions.
	Rates string
}

// Edge is an arrow.
type Edge struct {
	From, To string
	// Reference means that only a value is referred to, and no data flows.
	Reference bool
}

// Of returns the chart of a graph: data flow, and references. Services are
// drawn if they refer to something.
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
			// The references of a module are used by the nodes inside it.
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

// parent returns the ID of the frame around an ID, or "".
func parent(id string) string {
	i := strings.LastIndexByte(id, '/')
	return id[:max(i, 0)]
}

// childOf returns the child of a frame ("" for the whole chart) that is or
// contains an ID; ok is false if the ID is not inside the frame.
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
