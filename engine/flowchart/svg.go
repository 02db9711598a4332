package flowchart

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

// SVGOptions specify the use of an SVG.
type SVGOptions struct {
	// Inline omits the style, because the page that contains the SVG has it.
	// Classes are: flowchart; flow and reference of edges, head of their arrows;
	// module and node of boxes, with the Class of the Node; bar, name, label,
	// rates in them.
	Inline bool
	// Rates adds space for the nodes' third line.
	Rates bool
}

// style is the style of a stand-alone drawing.
const style = `
.flowchart { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; background: #fff; }
.flowchart .node > rect { fill: #fff; stroke: #d0d5dd; } .flowchart .node .bar { fill: #98a2b3; stroke: none; }
.flowchart .module > rect { fill: #f6f7f9; stroke: #d0d5dd; } .flowchart text { fill: #1c2430; }
.flowchart .name, .flowchart .rates { fill: #667085; } .flowchart .flow, .flowchart .reference { fill: none; stroke: #667085; stroke-width: 1.4; }
.flowchart .reference { stroke: #98a2b3; stroke-dasharray: 5 4; } .flowchart .head { fill: #667085; } .flowchart .head.dashed { fill: #98a2b3; }
@media (prefers-color-scheme: dark) {
.flowchart { background: #0f1319; } .flowchart .node > rect { fill: #171c24; stroke: #3a4250; } .flowchart .module > rect { fill: #12161d; stroke: #3a4250; }
.flowchart text { fill: #e6e9ee; } .flowchart .name, .flowchart .rates { fill: #98a2b3; }
}
`

// WriteSVG draws the chart.
func (c *Chart) WriteSVG(w io.Writer, o SVGOptions) error {
	l := arrange(c, o.Rates)
	d := &drawing{rates: o.Rates}
	d.f(`<svg xmlns="http://www.w3.org/2000/svg" class="flowchart" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" aria-label="%s">`,
		num(l.w), num(l.h), fmt.Sprintf("%d nodes and how they are connected", len(c.Nodes)))
	if !o.Inline {
		d.f("\n<style>%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\" fill=\"none\"/>", style)
	}
	for _, b := range l.boxes {
		d.frames(b, 0, 0)
	}
	for i, e := range c.Edges {
		d.edge(e, l.paths[i])
	}
	for _, b := range l.boxes {
		d.nodes(b, 0, 0)
	}
	d.f("\n</svg>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

type drawing struct {
	strings.Builder
	rates bool
}

func (d *drawing) f(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// frames draws the frames, the outer ones first.
func (d *drawing) frames(b *box, x, y float64) {
	if len(b.children) == 0 {
		return
	}
	x, y = x+b.x, y+b.y
	class, tip := "", b.id
	if b.node != nil {
		class, tip = " "+b.node.Class, b.node.tooltip()
	}
	d.open(b.node)
	d.f("\n<g class=\"module%s\" data-id=\"%s\"><title>%s</title><rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"10\"/>",
		html.EscapeString(class), html.EscapeString(b.id), html.EscapeString(tip), num(x), num(y), num(b.w), num(b.h))
	d.f("<text class=\"label\" x=\"%s\" y=\"%s\" font-size=\"13\" font-weight=\"600\">%s</text></g>", num(x+framePad), num(y+18), html.EscapeString(b.title()))
	d.close(b.node)
	for _, c := range b.children {
		d.frames(c, x, y)
	}
}

// nodes draws the boxes.
func (d *drawing) nodes(b *box, x, y float64) {
	x, y = x+b.x, y+b.y
	for _, c := range b.children {
		d.nodes(c, x, y)
	}
	if len(b.children) > 0 {
		return
	}
	n := b.node
	name, label := n.lines()
	d.open(n)
	d.f("\n<g class=\"node %s\" data-id=\"%s\"><title>%s</title><rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"6\"/>",
		html.EscapeString(n.Class), html.EscapeString(n.ID), html.EscapeString(n.tooltip()), num(x), num(y), num(b.w), num(b.h))
	d.f("<rect class=\"bar\" x=\"%s\" y=\"%s\" width=\"4\" height=\"%s\" rx=\"2\"/>", num(x), num(y+4), num(b.h-8))
	top := y
	if name == "" {
		top = y - 6
	} else {
		d.f("<text class=\"name\" x=\"%s\" y=\"%s\" font-size=\"11\">%s</text>", num(x+padding), num(y+17), html.EscapeString(name))
	}
	d.f("<text class=\"label\" x=\"%s\" y=\"%s\" font-size=\"13\" font-weight=\"600\">%s</text>", num(x+padding), num(top+33), html.EscapeString(label))
	if d.rates {
		d.f("<text class=\"rates\" x=\"%s\" y=\"%s\" font-size=\"10\">%s</text>", num(x+padding), num(y+49), html.EscapeString(n.Rates))
	}
	d.f("</g>")
	d.close(n)
}

func (n *Node) tooltip() string {
	if n.Tip == "" {
		return n.ID
	}
	return n.Tip
}

func (d *drawing) open(n *Node) {
	if n != nil && n.Href != "" {
		d.f("\n<a href=\"%s\">", html.EscapeString(n.Href))
	}
}

func (d *drawing) close(n *Node) {
	if n != nil && n.Href != "" {
		d.f("</a>")
	}
}

// edge draws a curve that is horizontal where it meets a box, and its arrow.
func (d *drawing) edge(e Edge, path []point) {
	if len(path) < 2 {
		return
	}
	end := path[len(path)-1]
	head := -7.0
	if path[len(path)-2].x > end.x {
		head = 7
	}
	class, dashed := "flow", ""
	if e.Reference {
		class, dashed = "reference", " dashed"
	}
	d.f("\n<path class=\"%s\" d=\"M%s %s", class, num(path[0].x), num(path[0].y))
	for i := 1; i < len(path); i++ {
		a, b := path[i-1], path[i]
		if i == len(path)-1 {
			b.x += head // where the arrow begins
		}
		switch {
		case a == b:
		case a.y == b.y:
			d.f(" L%s %s", num(b.x), num(b.y))
		default:
			mid := (a.x + b.x) / 2
			d.f(" C%s %s %s %s %s %s", num(mid), num(a.y), num(mid), num(b.y), num(b.x), num(b.y))
		}
	}
	d.f("\"><title>%s → %s</title></path>", html.EscapeString(e.From), html.EscapeString(e.To))
	d.f("<path class=\"head%s\" d=\"M%s %s l%s -4 v8 z\"/>", dashed, num(end.x), num(end.y), num(head))
}

// num formats a coordinate with at most one decimal digit.
func num(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	if s = strings.TrimSuffix(s, ".0"); s == "-0" {
		return "0"
	}
	return s
}
