package flowchart

import (
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Graph is a chart as data, for programs that draw it themselves.
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

// Rates are per second, in the last minute.
type Rates struct {
	In      float64 `json:"in"`      // samples and log lines that arrived
	Out     float64 `json:"out"`     // samples and log lines that were sent, once for each receiver
	Dropped float64 `json:"dropped"` // samples and log lines
	Waiting int64   `json:"waiting"` // samples and log lines in the queue
}

// GraphOf returns the graph of nodes and of the services that refer to something. rates
// returns the rates of a node; it is nil if the graph does not run.
func GraphOf(nodes, services []service.Info, rates func(id string) *Rates) *Graph {
	g := &Graph{Nodes: []GraphNode{}, Edges: []GraphEdge{}, Groups: []GraphGroup{}}
	c := Of(nodes, services)
	infos, groups := map[string]service.Info{}, map[string]bool{}
	for _, i := range append(append([]service.Info{}, nodes...), services...) {
		infos[i.ID] = i
		if i.Name == "foreach" {
			groups[i.ID] = true // also without items
		}
	}
	for _, n := range c.Nodes {
		for id := parent(n.ID); id != ""; id = parent(id) {
			groups[id] = true
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
		g.Groups = append(g.Groups, GraphGroup{ID: id, Label: (&box{id: id}).title(), Group: parent(id), Kind: groupKind(i), State: i.Health.State})
	}
	for _, n := range c.Nodes {
		if place(parent(n.ID)); groups[n.ID] {
			place(n.ID)
			continue
		}
		i := infos[n.ID]
		node := GraphNode{ID: n.ID, Name: n.Name, Label: n.Label, Group: parent(n.ID), Position: i.Position, State: i.Health.State}
		if rates != nil {
			node.Rates = rates(n.ID)
		}
		g.Nodes = append(g.Nodes, node)
	}
	for _, e := range c.Edges {
		if infos[e.From].ID != "" && infos[e.To].ID != "" {
			g.Edges = append(g.Edges, GraphEdge{From: e.From, To: e.To, Reference: e.Reference})
		}
	}
	g.flow()
	return g
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

// flow sets the rates of the edges. The rates of a node's edges in a direction add up to
// its own, so the last unknown rate follows from the known ones. If none follows, a node's
// rest is divided among its edges.
func (g *Graph) flow() {
	type side struct {
		left    float64
		unknown []int // edges
	}
	out, in := map[string]*side{}, map[string]*side{}
	for i := range g.Nodes {
		if r := g.Nodes[i].Rates; r != nil {
			out[g.Nodes[i].ID], in[g.Nodes[i].ID] = &side{left: r.Out}, &side{left: r.In}
		}
	}
	unknown := 0
	for i, e := range g.Edges {
		if from, to := out[e.From], in[e.To]; !e.Reference && from != nil && to != nil {
			from.unknown, to.unknown = append(from.unknown, i), append(to.unknown, i)
			unknown++
		}
	}
	set := func(i int, rate float64, estimated bool) {
		e := &g.Edges[i]
		rate = max(rate, 0) // the counters are not read at the same moment
		e.Rate, e.Estimated = &rate, estimated
		for _, s := range []*side{out[e.From], in[e.To]} {
			s.left -= rate
			for j, k := range s.unknown {
				if k == i {
					s.unknown = append(s.unknown[:j], s.unknown[j+1:]...)
					break
				}
			}
		}
		unknown--
	}
	for unknown > 0 {
		progress := false
		for i, e := range g.Edges {
			if e.Reference || e.Rate != nil || out[e.From] == nil || in[e.To] == nil {
				continue
			}
			from, to := out[e.From], in[e.To]
			switch {
			case len(from.unknown) == 1:
				set(i, from.left, false)
			case len(to.unknown) == 1:
				set(i, to.left, false)
			default:
				continue
			}
			progress = true
		}
		if progress {
			continue
		}
		for i, e := range g.Edges {
			if from := out[e.From]; from != nil && len(from.unknown) > 0 && from.unknown[0] == i {
				set(i, from.left/float64(len(from.unknown)), true)
				break
			}
		}
	}
}
