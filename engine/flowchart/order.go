package flowchart

import (
	"cmp"
	"math"
	"slices"
)

// order orders the vertices of each layer so that few edges cross: it sorts by
// the mean of the neighbours in several sweeps, and swaps adjacent vertices.
func (p *piece) order() {
	p.number()
	best, fewest := p.save(), p.crossings()
	for round := 0; round < 24 && fewest > 0; round++ {
		if round%2 == 0 {
			for l := 1; l < len(p.layers); l++ {
				sortByMean(p.layers[l], func(v *vertex) []*vertex { return v.in })
			}
		} else {
			for l := len(p.layers) - 2; l >= 0; l-- {
				sortByMean(p.layers[l], func(v *vertex) []*vertex { return v.out })
			}
		}
		p.swap()
		if n := p.crossings(); n < fewest {
			best, fewest = p.save(), n
		}
	}
	for l := range p.layers {
		copy(p.layers[l], best[l])
	}
	p.number()
}

func (p *piece) number() {
	for _, l := range p.layers {
		for i, v := range l {
			v.slot = i
		}
	}
}

func (p *piece) save() [][]*vertex {
	out := make([][]*vertex, len(p.layers))
	for i, l := range p.layers {
		out[i] = slices.Clone(l)
	}
	return out
}

// sortByMean sorts a layer. Vertices without neighbours keep their positions.
func sortByMean(layer []*vertex, beside func(*vertex) []*vertex) {
	for i, v := range layer {
		v.mean = float64(i)
		if ns := beside(v); len(ns) > 0 {
			sum := 0.0
			for _, n := range ns {
				sum += float64(n.slot)
			}
			v.mean = sum / float64(len(ns))
		}
	}
	slices.SortStableFunc(layer, func(a, b *vertex) int { return cmp.Compare(a.mean, b.mean) })
	for i, v := range layer {
		v.slot = i
	}
}

// swap exchanges adjacent vertices as long as that saves crossings.
func (p *piece) swap() {
	for range 4 {
		better := false
		for _, l := range p.layers {
			for i := range len(l) - 1 {
				a, b := l[i], l[i+1]
				if countCrossings(a.in, b.in)+countCrossings(a.out, b.out) > countCrossings(b.in, a.in)+countCrossings(b.out, a.out) {
					l[i], l[i+1] = b, a
					a.slot, b.slot = i+1, i
					better = true
				}
			}
		}
		if !better {
			return
		}
	}
}

// countCrossings counts the crossings of the edges of two vertices, a above b.
func countCrossings(a, b []*vertex) (n int) {
	if len(a)*len(b) > 10_000 {
		return 0 // two hubs, which sorting has handled
	}
	for _, x := range a {
		for _, y := range b {
			if x.slot > y.slot {
				n++
			}
		}
	}
	return n
}

// crossings counts the crossings in all layers.
func (p *piece) crossings() (n int) {
	for l := range len(p.layers) - 1 {
		var ends []int
		for _, v := range p.layers[l] {
			from := len(ends)
			for _, w := range v.out {
				ends = append(ends, w.slot)
			}
			slices.Sort(ends[from:])
		}
		n += inversions(ends, len(p.layers[l+1]))
	}
	return n
}

// inversions counts the pairs that are out of order, with a Fenwick tree.
func inversions(xs []int, size int) (n int) {
	tree := make([]int, size+1)
	for i, x := range xs {
		// atMost is the number of earlier elements that are at most x.
		atMost := 0
		for j := x + 1; j > 0; j -= j & -j {
			atMost += tree[j]
		}
		n += i - atMost
		for j := x + 1; j <= size; j += j & -j {
			tree[j]++
		}
	}
	return n
}

// place assigns coordinates: horizontally by layers; vertically so that
// vertices are near their neighbours and edges over several layers are
// straight.
func (p *piece) place() {
	for _, l := range p.layers {
		y := 0.0
		for i, v := range l {
			if i > 0 {
				y += minDistance(l[i-1], v)
			}
			v.mid = y
		}
	}
	for round := range 40 {
		if round%2 == 0 {
			for l := 1; l < len(p.layers); l++ {
				align(p.layers[l], func(v *vertex) []*vertex { return v.in })
			}
		} else {
			for l := len(p.layers) - 2; l >= 0; l-- {
				align(p.layers[l], func(v *vertex) []*vertex { return v.out })
			}
		}
	}
	// The last pass uses both sides.
	for _, l := range p.layers {
		align(l, func(v *vertex) []*vertex { return append(slices.Clip(v.in), v.out...) })
	}
	p.measure()
}

// measure sets x, and moves everything so that it begins at 0, 0.
func (p *piece) measure() {
	top, bottom := math.Inf(1), math.Inf(-1)
	x := 0.0
	for i, l := range p.layers {
		w, frames, edges := 0.0, 0.0, 0
		for _, v := range l {
			if v.frame() {
				frames = max(frames, v.w)
			} else {
				w = max(w, v.w)
			}
			edges += len(v.out)
			top, bottom = min(top, v.mid-v.h/2), max(bottom, v.mid+v.h/2)
		}
		for _, v := range l {
			v.x = x
			v.column = max(w, frames)
			switch {
			case v.bend():
				v.w = max(w, frames)
			case !v.frame():
				v.w = w // a column of equal boxes
			}
		}
		x += max(w, frames)
		switch {
		case i == len(p.layers)-1:
		case l[0].port == 1 || p.layers[i+1][0].port == 2:
			x += layerGap / 2 // from or to a border
		default:
			x += layerGap + min(64, 8*math.Sqrt(float64(edges)))
		}
	}
	p.w, p.h = x, bottom-top
	for _, l := range p.layers {
		for _, v := range l {
			v.mid -= top
			v.y = v.mid - v.h/2
		}
	}
}

// minDistance is the minimum distance between the centres of two neighbours.
func minDistance(a, b *vertex) float64 {
	g := gap
	if a.bend() || b.bend() {
		g = gap * 0.75
	}
	if a.bend() && b.bend() {
		g = gap * 0.5
	}
	return a.h/2 + b.h/2 + g
}

// align moves the vertices of a layer to the positions of their neighbours, as
// near as their order and sizes allow. It minimises the sum of squares by
// pooling vertices that would overlap (isotonic regression).
func align(layer []*vertex, beside func(*vertex) []*vertex) {
	type block struct {
		sum, weight float64
		from, to    int
	}
	var blocks []block
	offset := make([]float64, len(layer)) // of each from the first, when packed
	for i, v := range layer {
		if i > 0 {
			offset[i] = offset[i-1] + minDistance(layer[i-1], v)
		}
		want, weight := v.mid, 0.2
		if ns := beside(v); len(ns) > 0 {
			sum, total := 0.0, 0.0
			for _, n := range ns {
				w := 1.0
				if v.bend() && n.bend() {
					w = 8
				}
				sum, total = sum+w*n.mid, total+w
			}
			want, weight = sum/total, 1+math.Log(total)
		}
		b := block{(want - offset[i]) * weight, weight, i, i}
		for len(blocks) > 0 && blocks[len(blocks)-1].sum/blocks[len(blocks)-1].weight > b.sum/b.weight {
			l := blocks[len(blocks)-1]
			b = block{l.sum + b.sum, l.weight + b.weight, l.from, b.to}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		for i := b.from; i <= b.to; i++ {
			layer[i].mid = b.sum/b.weight + offset[i]
		}
	}
}

// pack arranges the pieces below each other, and pieces of one box side by
// side.
func (g *layered) pack() (w, h float64) {
	var single []*piece
	for _, p := range g.pieces {
		if len(p.layers) == 1 && len(p.layers[0]) == 1 {
			single = append(single, p)
			continue
		}
		if h > 0 {
			h += 2 * gap
		}
		p.move(0, h)
		w, h = max(w, p.w), h+p.h
	}
	x, row := 0.0, 0.0
	limit := max(w, 900)
	for i, p := range single {
		switch {
		case i == 0 && h > 0:
			h += 2 * gap
		case x > 0 && x+p.w > limit:
			x, h, row = 0, h+row+gap, 0
		}
		p.move(x, h)
		w, row = max(w, x+p.w), max(row, p.h)
		x += p.w + gap
	}
	return w, h + row
}

func (p *piece) move(x, y float64) {
	for _, l := range p.layers {
		for _, v := range l {
			v.x, v.y, v.mid = v.x+x, v.y+y, v.mid+y
		}
	}
}

// path returns the points of an edge: border, both ends of each bend, border.
func (a *arc) path() []point {
	l, r := a.left(), a.right()
	aside := 0.0
	if a.reversed {
		aside = 10 // next to an edge in the opposite direction
	}
	pts := []point{{l.x + l.w, l.attach(a.edge) + aside}}
	if l.column > l.w { // past the frames in its layer
		pts = append(pts, point{l.x + l.column, pts[0].y})
	}
	for _, b := range a.bends {
		pts = append(pts, point{b.x, b.mid}, point{b.x + b.w, b.mid})
	}
	pts = append(pts, point{r.x, r.attach(a.edge) + aside})
	if a.reversed {
		slices.Reverse(pts)
	}
	return pts
}

// attach returns the height at which an edge meets a vertex.
func (v *vertex) attach(edge int) float64 {
	if v.box != nil {
		if p, ok := v.box.ports[edge]; ok {
			return v.y + p.y
		}
	}
	return v.mid
}
