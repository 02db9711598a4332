package scrape

import "slices"

// pack releases the memory that is not needed while bodies match the last layout:
// indexes and spare capacity.
func (c *cache) pack() {
	c.byText, c.byLabels, c.byName = table{}, table{}, table{}
	c.lines, c.series, c.families = exact(c.lines), exact(c.series), exact(c.families)
}

// exact returns a copy of s without spare capacity if s has much of it.
func exact[S ~[]E, E any](s S) S {
	if cap(s)-len(s) > len(s)/16 {
		return slices.Clip(append(make(S, 0, len(s)), s...))
	}
	return s
}

// dropLines removes the lines that were not in the current scrape, and the series
// without lines.
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
		for i := range lo.lines { // these are all lines of the current scrape
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

// dropFamilies removes the families that have had no lines for a long time.
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
