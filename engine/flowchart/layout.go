package flowchart

import (
	"slices"
	"unicode/utf8"
)

// Sizes, in pixels.
const (
	nameWidth  = 6.7  // of a character of the small line: monospace, 11 px
	labelWidth = 7.9  // of a character of the label: monospace, 13 px
	rateWidth  = 6.1  // of a character of the third line: monospace, 10 px
	boxHeight  = 42.0 // of two lines
	rateHeight = 15.0 // of the third line
	padding    = 14.0 // left and right of the text
	gap        = 16.0 // between boxes of a layer
	layerGap   = 56.0 // between layers
	framePad   = 16.0 // between a frame and what is in it
	frameHead  = 26.0 // above it, for its name
	margin     = 16.0 // around everything
	maxText    = 44   // characters; more are cut
)

// box is a node or a frame with its layout.
type box struct {
	id         string
	node       *Node // nil for a frame that is not a node
	x, y, w, h float64
	children   []*box // of a frame; positions are relative to it
	// ports are the points where edges cross the border of a frame, as distances
	// from its upper edge, and the shape of the edges inside.
	ports map[int]port
}

type port struct {
	y    float64
	path []point // from the border to the inside, or vice versa; relative to the box
}

type point struct{ x, y float64 }

// layout is a chart with positions.
type layout struct {
	w, h  float64
	boxes []*box
	paths [][]point // by edge; nil if it is not drawn
}

// frames contains the content of each frame.
type frames struct {
	chart    *Chart
	nodes    map[string]*Node
	children map[string][]string // IDs by frame, in the order of the chart
	rates    bool
	paths    [][]point
}

// arrange lays out a chart. rates adds space for a third line.
func arrange(c *Chart, rates bool) *layout {
	f := &frames{chart: c, nodes: map[string]*Node{}, children: map[string][]string{}, rates: rates, paths: make([][]point, len(c.Edges))}
	seen := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		f.nodes[n.ID] = n
		for id := n.ID; id != "" && !seen[id]; id = parent(id) {
			seen[id] = true
			f.children[parent(id)] = append(f.children[parent(id)], id)
		}
	}
	root := f.frame("")
	l := &layout{w: root.w + 2*margin, h: root.h + 2*margin, boxes: root.children}
	for _, b := range l.boxes {
		b.x += margin
		b.y += margin
	}
	for _, path := range f.paths {
		for i := range path {
			path[i].x += margin
			path[i].y += margin
		}
	}
	l.paths = f.paths
	return l
}

// hasEdge reports whether an edge can be drawn.
func (f *frames) hasEdge(e Edge) bool {
	has := func(id string) bool { return f.nodes[id] != nil }
	return has(e.From) && has(e.To) && e.From != e.To
}

// frame lays out the content of a frame, or of the whole chart for "".
func (f *frames) frame(id string) *box {
	b := &box{id: id, node: f.nodes[id], ports: map[int]port{}}
	g := &layered{}
	byID := map[string]*vertex{}
	for _, child := range f.children[id] {
		var c *box
		if len(f.children[child]) > 0 {
			c = f.frame(child)
		} else {
			c = f.leaf(child)
		}
		byID[child] = g.add(&vertex{box: c, w: c.w, h: c.h})
		b.children = append(b.children, c)
	}
	// Edges inside, and edges that cross the border. The latter share a port per
	// inner end.
	type end struct {
		id        string
		out, dash bool
	}
	ports := map[end]*vertex{}
	arcs := make(map[int]*arc)
	atPort := func(e end) *vertex {
		v := ports[e]
		if v == nil {
			v = g.add(&vertex{port: 1, h: 1})
			if e.out {
				v.port = 2
			}
			ports[e] = v
		}
		return v
	}
	for i, e := range f.chart.Edges {
		if !f.hasEdge(e) {
			continue
		}
		from, fromIn := childOf(id, e.From)
		to, toIn := childOf(id, e.To)
		var a, z *vertex
		switch {
		case fromIn && toIn && from == to, !fromIn && !toIn:
			continue
		case fromIn && toIn:
			a, z = byID[from], byID[to]
		case toIn && e.From != id:
			a, z = atPort(end{e.To, false, e.Reference}), byID[to]
		case fromIn && e.To != id:
			a, z = byID[from], atPort(end{e.From, true, e.Reference})
		default:
			continue // between a frame and its content
		}
		arcs[i] = g.connect(a, z, i, e.Reference)
	}
	w, h := g.run()
	top, side := frameHead, framePad
	if id == "" {
		top, side = 0, 0
	}
	b.w, b.h = w+2*side, h+top+side
	if b.node != nil || id != "" {
		b.w = max(b.w, f.headWidth(b))
	}
	for _, v := range g.vertices {
		if v.box != nil {
			v.box.x, v.box.y = v.x+side, v.y+top
			v.box.w = v.w
		}
	}
	for i, a := range arcs {
		path := a.path()
		for j := range path {
			path[j].x += side
			path[j].y += top
		}
		e := f.chart.Edges[i]
		if c := f.inner(byID, id, e.From); c != nil && !a.reversed {
			path = append(shifted(c.ports[i].path, c), path...)
		}
		if c := f.inner(byID, id, e.To); c != nil && !a.reversed {
			path = append(path, shifted(c.ports[i].path, c)...)
		}
		switch {
		case a.from.port == 1:
			path[0].x = 0
			b.ports[i] = port{path[0].y, path}
		case a.to.port == 2:
			path[len(path)-1].x = b.w
			b.ports[i] = port{path[len(path)-1].y, path}
		default:
			f.paths[i] = path
		}
	}
	f.moveEdges(id, b)
	return b
}

// moveEdges moves the paths of edges inside the children to their positions.
func (f *frames) moveEdges(id string, b *box) {
	for _, c := range b.children {
		if len(c.children) == 0 {
			continue
		}
		for i, e := range f.chart.Edges {
			from, ok := childOf(id, e.From)
			to, also := childOf(id, e.To)
			if ok && also && from == c.id && to == c.id && f.paths[i] != nil {
				f.paths[i] = shifted(f.paths[i], c)
			}
		}
	}
}

// inner returns the frame below id that contains an end of an edge.
func (f *frames) inner(byID map[string]*vertex, id, end string) *box {
	child, ok := childOf(id, end)
	if !ok || child == end {
		return nil
	}
	return byID[child].box
}

func shifted(path []point, by *box) []point {
	out := slices.Clone(path)
	for i := range out {
		out[i].x += by.x
		out[i].y += by.y
	}
	return out
}

// leaf returns a box for a node.
func (f *frames) leaf(id string) *box {
	n := f.nodes[id]
	b := &box{id: id, node: n, h: boxHeight}
	name, label := n.lines()
	w := max(nameWidth*length(name), labelWidth*length(label))
	if f.rates {
		b.h += rateHeight
		w = max(w, rateWidth*24)
	}
	b.w = max(96, w+2*padding)
	return b
}

func (f *frames) headWidth(b *box) float64 { return labelWidth*length(b.title()) + 2*framePad }

// title returns the text in a frame's head.
func (b *box) title() string {
	own := b.id[len(parent(b.id)):]
	if own != b.id {
		own = own[1:]
	}
	return cut(own)
}

// lines returns the two lines of a node; the upper one may be empty.
func (n *Node) lines() (name, label string) {
	if n.Label == "" {
		return "", cut(n.Name)
	}
	return cut(n.Name), cut(n.Label)
}

// cut shortens a text in its middle.
func cut(s string) string {
	r := []rune(s)
	if len(r) <= maxText {
		return s
	}
	return string(r[:maxText/2]) + "…" + string(r[len(r)-maxText/2+1:])
}

func length(s string) float64 { return float64(utf8.RuneCountInString(s)) }
