package flowchart

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteDOT writes the graph in the DOT language of Graphviz.
//
// Format: https://graphviz.org/doc/info/lang.html
func (g *Graph) WriteDOT(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph weir {\n  rankdir=LR;\n  compound=true;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n")
	groups, ends := map[string]bool{}, map[string]bool{}
	for _, o := range g.Groups {
		groups[o.ID] = true
	}
	for _, e := range g.Edges {
		ends[e.From], ends[e.To] = true, true
	}
	var write func(group, indent string)
	write = func(group, indent string) {
		for _, n := range g.Nodes {
			if n.Group == group {
				fmt.Fprintf(&b, "%s%s [label=%s];\n", indent, strconv.Quote(n.ID), strconv.Quote(strings.Join(n.lines(), "\n")))
			}
		}
		for _, o := range g.Groups {
			if o.Group != group {
				continue
			}
			fmt.Fprintf(&b, "%ssubgraph %s {\n%[1]s  label=%[3]s;\n", indent, strconv.Quote("cluster_"+o.ID), strconv.Quote(o.Label))
			if ends[o.ID] { // both ends of an edge must be nodes
				fmt.Fprintf(&b, "%s  %s [shape=point, style=invis];\n", indent, strconv.Quote(o.ID))
			}
			write(o.ID, indent+"  ")
			fmt.Fprintf(&b, "%s}\n", indent)
		}
	}
	write("", "  ")
	for _, e := range g.Edges {
		var attrs []string
		if e.Reference {
			attrs = append(attrs, "style=dashed")
		}
		if groups[e.From] {
			attrs = append(attrs, "ltail="+strconv.Quote("cluster_"+e.From))
		}
		if groups[e.To] {
			attrs = append(attrs, "lhead="+strconv.Quote("cluster_"+e.To))
		}
		fmt.Fprintf(&b, "  %s -> %s", strconv.Quote(e.From), strconv.Quote(e.To))
		if len(attrs) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(attrs, ", "))
		}
		b.WriteString(";\n")
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
