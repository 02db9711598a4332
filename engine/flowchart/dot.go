package flowchart

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteDOT writes the chart in the DOT language of Graphviz.
//
// Format: https://graphviz.org/doc/info/lang.html
func (c *Chart) WriteDOT(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph weir {\n  rankdir=LR;\n  compound=true;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n")
	children, nodes := map[string][]string{}, map[string]*Node{}
	seen := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		nodes[n.ID] = n
		for id := n.ID; id != "" && !seen[id]; id = parent(id) {
			seen[id] = true
			children[parent(id)] = append(children[parent(id)], id)
		}
	}
	var write func(frame, indent string)
	write = func(frame, indent string) {
		for _, id := range children[frame] {
			if len(children[id]) > 0 {
				fmt.Fprintf(&b, "%ssubgraph %s {\n%[1]s  label=%[3]s;\n", indent, strconv.Quote("cluster_"+id), strconv.Quote((&box{id: id}).title()))
				if nodes[id] != nil { // both ends of an edge must exist
					fmt.Fprintf(&b, "%s  %s [shape=point, style=invis];\n", indent, strconv.Quote(id))
				}
				write(id, indent+"  ")
				fmt.Fprintf(&b, "%s}\n", indent)
				continue
			}
			name, label := nodes[id].lines()
			if name != "" {
				label = name + "\n" + label
			}
			fmt.Fprintf(&b, "%s%s [label=%s];\n", indent, strconv.Quote(id), strconv.Quote(label))
		}
	}
	write("", "  ")
	for _, e := range c.Edges {
		if nodes[e.From] == nil || nodes[e.To] == nil {
			continue
		}
		var attrs []string
		if e.Reference {
			attrs = append(attrs, "style=dashed")
		}
		if len(children[e.From]) > 0 {
			attrs = append(attrs, "ltail="+strconv.Quote("cluster_"+e.From))
		}
		if len(children[e.To]) > 0 {
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
