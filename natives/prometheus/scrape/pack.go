package scrape

import "slices"

// pack gives back what is not needed as long as bodies are of the last one's
// layout: tables, and room for more.
func (c *cache) pack() {
	c.byText, c.byLabels, c.byName = table{}, table{}, table{}
	c.lines, c.series, c.families = exact(c.lines), exact(c.series), exact(c.families)
}

// exact returns s in memory of its size, if it has much more.
func exact[S ~[]E, E any](s S) S {
	if cap(s)-len(s) > len(s)/16 {
		return slices.Clip(append(make(S, 0, len(s)), s...))
	}
	return s
}

// dropLines drops the lines that were not in the running scrape, and the series
// that no line means any more.
func (c *cache) dropLines() {
	moved := make([]uint32, max(len(c.lines), len(c.series)))
	n := 0
	for i, l := range c.lines {
		if l.iter != c.iter {
			c.series[l.s].lines--
			continue
		}
		c.lines[n], moved[i] = l, uint32(n)
		n++
	}
	c.lines = c.lines[:n]
	c.byText.drop()
	if lo := c.layout; lo != nil {
		for i := range lo.lines { // which are all of the running scrape
			lo.lines[i].line = moved[lo.lines[i].line]
		}
	}
	n = 0
	for i, s := range c.series {
		if s.lines == 0 {
			c.gone = append(c.gone, s.h)
			continue
		}
		c.series[n], moved[i] = s, uint32(n)
		n++
	}
	if n == len(c.series) {
		return
	}
	clear(c.series[n:])
	c.series = c.series[:n]
	c.byLabels.drop()
	for i := range c.lines {
		c.lines[i].s = moved[c.lines[i].s]
	}
}

// dropFamilies drops the families that long no line was about.
func (c *cache) dropFamilies() {
	old := func(f family) bool { return c.iter-f.iter > 10 }
	if !slices.ContainsFunc(c.families, old) {
		return
	}
	moved := make([]uint32, len(c.families))
	n := 0
	for i, f := range c.families {
		if !old(f) {
			c.families[n], moved[i] = f, uint32(n)
			n++
		}
	}
	clear(c.families[n:])
	c.families = c.families[:n]
	c.byName.drop()
	if lo := c.layout; lo != nil {
		for i := range lo.meta {
			lo.meta[i].family = moved[lo.meta[i].family]
		}
	}
}
