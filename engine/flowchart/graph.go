// Package flowchart describes the nodes of a config and the flow of data between them: as
// data for programs that draw it, as DOT for Graphviz, and for Mermaid.
//
// A node whose ID is outer/inner is in the group outer. Equal nodes give equal bytes.
package flowchart

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Graph is nodes and what connects them.
type Graph struct {
	Nodes  []GraphNode  `json:"nodes"`  // in the order of the config
	Edges  []GraphEdge  `json:"edges"`  // between nodes; one end may be a group that is referred to
	Groups []GraphGroup `json:"groups"` // outer groups come before inner ones
}

// GraphNode is a component, or a service that refers to something.
type GraphNode struct {
	ID       string `json:"id"`
	Name     string `json:"name"`  // of its block
	Label    string `json:"label"` // of its block; "" if it has none
	Group    string `json:"group"` // the ID of the group that it is in, or ""
	Position string `json:"position"`
	// State is the health. It is unknown if the graph does not run.
	State component.HealthState `json:"state"`
	// Rates are missing if the graph does not run.
	Rates *Rates `json:"rates,omitempty"`
}

// GraphEdge is the flow of data, or a reference to the exports of a node.
type GraphEdge struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Reference bool   `json:"reference"` // no data flows
	// Rate is the number of samples and log lines per second in the last minute. It is
	// missing for references and if the graph does not run.
	Rate *float64 `json:"rate,omitempty"`
	// Estimated is set if the rate does not follow from the counters of the nodes, because
	// several nodes send to several common ones.
	Estimated bool `json:"estimated,omitempty"`
}

// GraphGroup contains nodes and groups.
type GraphGroup struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Group string `json:"group"` // the ID of the group that it is in, or ""
	// Kind is foreach, import, module, or item (of a foreach).
	Kind  string                `json:"kind"`
	State component.HealthState `json:"state"`
}

// Of returns the graph of nodes and of the services that refer to something. rates
// returns the rates of a node; it is nil if the graph does not run.
func Of(nodes, services []service.Info, rates func(id string) *Rates) *Graph {
	g := &Graph{Nodes: []GraphNode{}, Edges: []GraphEdge{}, Groups: []GraphGroup{}}
	for _, s := range services {
		if len(s.DependsOn) > 0 {
			nodes = append(slices.Clip(nodes), s)
		}
	}
	infos, filled := map[string]service.Info{}, map[string]bool{}
	for _, i := range nodes {
		infos[i.ID] = i
		for id := parent(i.ID); id != ""; id = parent(id) {
			filled[id] = true
		}
	}
	placed := map[string]bool{}
	var place func(id string)
	place = func(id string) {
		if id == "" || placed[id] {
			return
		}
		placed[id] = true
		place(parent(id))
		i := infos[id]
		g.Groups = append(g.Groups, GraphGroup{ID: id, Label: cut(last(id)), Group: parent(id), Kind: groupKind(i), State: i.Health.State})
	}
	connect := func(from, to string, reference bool) {
		if infos[from].ID != "" && infos[to].ID != "" {
			g.Edges = append(g.Edges, GraphEdge{From: from, To: to, Reference: reference})
		}
	}
	for _, i := range nodes {
		place(parent(i.ID))
		if filled[i.ID] || i.Name == "foreach" { // also without items
			place(i.ID)
		} else {
			g.Nodes = append(g.Nodes, newNode(i, rates))
		}
		for _, id := range i.SendsTo {
			connect(i.ID, id, false)
		}
		for _, id := range i.DependsOn {
			// The references of a group are used by the nodes inside it.
			if !slices.Contains(i.SendsTo, id) && !filled[i.ID] {
				connect(id, i.ID, true)
			}
		}
	}
	g.flow()
	return g
}

func newNode(i service.Info, rates func(id string) *Rates) GraphNode {
	n := GraphNode{ID: i.ID, Name: i.Name, Group: parent(i.ID), Position: i.Position, State: i.Health.State}
	if label, ok := strings.CutPrefix(last(i.ID), i.Name+"."); ok {
		n.Label = label
	}
	if rates != nil {
		n.Rates = rates(i.ID)
	}
	return n
}

func groupKind(i service.Info) string {
	switch {
	case i.Name == "":
		return "item"
	case i.Name == "foreach":
		return "foreach"
	case strings.HasPrefix(i.Name, "import."):
		return "import"
	}
	return "module"
}

// parent returns the ID of the group around an ID, or "".
func parent(id string) string {
	return id[:max(strings.LastIndexByte(id, '/'), 0)]
}

// last returns an ID without those of the groups around it.
func last(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }
