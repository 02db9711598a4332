package scrape

import "slices"

// maxPatient bounds how long a cache waits until it is packed.
const maxPatient = 64

// replayed notes a body of the last one's layout, which left the cache as it
// was. After some in a row the cache is packed: what is in the layout is not
// kept a second time.
func (c *cache) replayed() {
	if c.calm++; c.calm >= c.patient && c.lines != nil {
		c.pack()
	}
}

// pack drops what unpack can make again from the layout: lines by their text,
// which is a third of what a series costs beside its labels.
func (c *cache) pack() {
	lo := c.layout
	distinct := 0
	for i := range lo.lines {
		if lo.lines[i].l.at == i {
			distinct++
		}
	}
	if distinct != len(c.lines) {
		c.patient = maxPatient // some are not in the layout
		c.calm = 0
		return
	}
	c.lines, c.cur = nil, nil
	c.prev = exact(c.prev)
	lo.text, lo.lines, lo.meta = exact(lo.text), exact(lo.lines), exact(lo.meta)
}

// exact returns s in memory of its size, if it has much more.
func exact[S ~[]E, E any](s S) S {
	if cap(s)-len(s) > len(s)/16 {
		return slices.Clip(append(make(S, 0, len(s)), s...))
	}
	return s
}

// unpack makes the lines again; a body came that is not of the layout. Who often
// needs that is packed later each time.
func (c *cache) unpack() {
	c.calm = 0
	if c.lines != nil {
		return
	}
	c.patient = min(2*c.patient, maxPatient)
	lo := c.layout
	c.lines = make(map[string]*line, len(lo.lines))
	for i := range lo.lines {
		c.lines[string(lo.key(i))] = lo.lines[i].l
	}
}
