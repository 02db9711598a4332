package flowchart

import (
	"cmp"
	"slices"
)

// layered computes a layered layout of a graph (Sugiyama, Tagawa, Toda 1981):
// cycles are broken, each vertex gets a layer, edges over several layers get a
// vertex in each, layers are ordered so that few edges cross, and then
// everything gets coordinates.
type layered struct {
	vertices []*vertex // without the bends of long edges
	arcs     []*arc
	pieces   []*piece
}

// vertex is a box, a port, or a bend of an edge.
type vertex struct {
	box  *box
	port int // 0 none, 1 on the left border, 2 on the right one
	w, h float64
	x, y float64 // of the upper left corner, after the layout

	index   int // in order of appearance
	layer   int
	slot    int       // in its layer
	mid     float64   // of its height
	in, out []*vertex // neighbours in the adjacent layers
	mean    float64
	starts  []*arc  // arcs from it
	column  float64 // width of its layer
}

func (v *vertex) bend() bool { return v.box == nil && v.port == 0 }

func (v *vertex) frame() bool { return v.box != nil && len(v.box.children) > 0 }

// arc is an edge between two vertices. A reversed arc is laid out from right to
// left.
type arc struct {
	from, to *vertex
	edge     int
	dash     bool
	reversed bool
	bends    []*vertex // from left to right
}

// piece is a connected part of the graph.
type piece struct {
	layers [][]*vertex
	w, h   float64
}

func (g *layered) add(v *vertex) *vertex {
	v.index = len(g.vertices)
	g.vertices = append(g.vertices, v)
	return v
}

// connect returns an arc for an edge. Edges that would cover each other share
// an arc.
func (g *layered) connect(from, to *vertex, edge int, dash bool) *arc {
	height := func(v *vertex, edge int) float64 {
		if v.box == nil {
			return 0
		}
		return v.box.ports[edge].y
	}
	for _, a := range from.starts {
		if a.to == to && a.dash == dash && height(from, a.edge) == height(from, edge) && height(to, a.edge) == height(to, edge) {
			return a
		}
	}
	a := &arc{from: from, to: to, edge: edge, dash: dash}
	from.starts = append(from.starts, a)
	g.arcs = append(g.arcs, a)
	return a
}

// left and right return the ends in the layout.
func (a *arc) left() *vertex {
	if a.reversed {
		return a.to
	}
	return a.from
}

func (a *arc) right() *vertex {
	if a.reversed {
		return a.from
	}
	return a.to
}

// run places every vertex and returns the total size.
func (g *layered) run() (w, h float64) {
	if len(g.vertices) == 0 {
		return 0, 0
	}
	g.breakCycles()
	g.assign()
	for _, vs := range g.split() {
		g.pieces = append(g.pieces, newPiece(vs, g.arcs))
	}
	for _, p := range g.pieces {
		p.order()
		p.place()
	}
	return g.pack()
}

// breakCycles reverses arcs that would close a cycle. Arcs with data flow come
// first, so that references are reversed instead.
func (g *layered) breakCycles() {
	next := map[*vertex][]*vertex{}
	reaches := func(from, to *vertex) bool {
		seen := map[*vertex]bool{from: true}
		for todo := []*vertex{from}; len(todo) > 0; {
			v := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if v == to {
				return true
			}
			for _, n := range next[v] {
				if !seen[n] {
					seen[n] = true
					todo = append(todo, n)
				}
			}
		}
		return false
	}
	for _, dash := range []bool{false, true} {
		for _, a := range g.arcs {
			if a.dash != dash {
				continue
			}
			a.reversed = reaches(a.to, a.from)
			next[a.left()] = append(next[a.left()], a.right())
		}
	}
}

// assign gives each vertex a layer: as far left as its predecessors allow, then
// moved towards its neighbours so that edges are short.
func (g *layered) assign() {
	before, after := map[*vertex][]*arc{}, map[*vertex][]*arc{}
	for _, a := range g.arcs {
		before[a.right()] = append(before[a.right()], a)
		after[a.left()] = append(after[a.left()], a)
	}
	var topo []*vertex
	missing := map[*vertex]int{}
	for _, v := range g.vertices {
		if missing[v] = len(before[v]); missing[v] == 0 {
			topo = append(topo, v)
		}
	}
	for i := 0; i < len(topo); i++ {
		v := topo[i]
		if v.port != 1 && v.layer == 0 {
			v.layer = 1 // the border has its own layer
		}
		for _, a := range after[v] {
			w := a.right()
			w.layer = max(w.layer, v.layer+1)
			if missing[w]--; missing[w] == 0 {
				topo = append(topo, w)
			}
		}
	}
	last := 0
	for _, v := range topo {
		last = max(last, v.layer)
	}
	weight := func(as []*arc) (n int) {
		for _, a := range as {
			if n += 3; a.dash {
				n -= 2
			}
		}
		return n
	}
	for range 4 {
		for _, v := range slices.Backward(topo) {
			if v.port == 0 && len(after[v]) > 0 && weight(after[v]) > weight(before[v]) {
				to := last
				for _, a := range after[v] {
					to = min(to, a.right().layer-1)
				}
				v.layer = max(v.layer, to)
			}
		}
	}
	for _, v := range g.vertices {
		if v.port == 2 {
			v.layer = last + 1
		}
	}
}

// split returns the vertices of each connected part, in order of appearance.
// Vertices with ports form one part, because a frame has one border.
func (g *layered) split() (parts [][]*vertex) {
	group := make([]int, len(g.vertices))
	for i := range group {
		group[i] = i
	}
	var find func(i int) int
	find = func(i int) int {
		if group[i] != i {
			group[i] = find(group[i])
		}
		return group[i]
	}
	join := func(a, b int) {
		a, b = find(a), find(b)
		group[max(a, b)] = min(a, b)
	}
	first := -1
	for _, a := range g.arcs {
		join(a.from.index, a.to.index)
	}
	for _, v := range g.vertices {
		if v.port == 0 {
			continue
		}
		if first < 0 {
			first = v.index
		}
		join(first, v.index)
	}
	at := map[int]int{}
	for _, v := range g.vertices {
		root := find(v.index)
		i, ok := at[root]
		if !ok {
			i = len(parts)
			at[root] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], v)
	}
	return parts
}

// newPiece returns a part including the bends of its long edges.
func newPiece(vs []*vertex, arcs []*arc) *piece {
	p := &piece{}
	mine := map[*vertex]bool{}
	lo, hi := vs[0].layer, vs[0].layer
	for _, v := range vs {
		mine[v] = true
		lo, hi = min(lo, v.layer), max(hi, v.layer)
	}
	p.layers = make([][]*vertex, hi-lo+1)
	for _, v := range vs {
		v.layer -= lo
		p.layers[v.layer] = append(p.layers[v.layer], v)
	}
	for _, a := range arcs {
		if !mine[a.from] {
			continue
		}
		v := a.left()
		for l := v.layer + 1; l < a.right().layer; l++ {
			b := &vertex{h: 2, layer: l, index: a.right().index}
			a.bends = append(a.bends, b)
			p.layers[l] = append(p.layers[l], b)
			link(v, b)
			v = b
		}
		link(v, a.right())
	}
	for _, l := range p.layers {
		slices.SortStableFunc(l, func(a, b *vertex) int { return cmp.Compare(a.index, b.index) })
	}
	return p
}

func link(a, b *vertex) {
	a.out = append(a.out, b)
	b.in = append(b.in, a)
}
