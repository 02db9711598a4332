package scrape

import "slices"

// A cache that was unpacked waits for minPatient bodies until it is packed again,
// then for twice as many each time, up to maxPatient.
const (
	minPatient = 4
	maxPatient = 64
)

// replayed notes a body of the last one's layout, which left the cache as it
// was, or one that made a layout. The first is enough for the cache to be packed:
// what is in the layout is not kept a second time. After it was unpacked, it takes
// some in a row.
func (c *cache) replayed() {
	if c.calm++; c.calm >= c.patient && c.lines != nil {
		c.pack()
	}
}

// pack drops what unpack can make again from the layout: lines by their text and
// series by their labels, which is a third of what a series costs beside its
// labels.
func (c *cache) pack() {
	lo := c.layout
	distinct := 0
	for i := range lo.lines {
		if int(lo.lines[i].l.at) == i {
			distinct++
		}
	}
	if distinct != len(c.lines) {
		c.patient = maxPatient // some are not in the layout
		c.calm = 0
		return
	}
	c.lines, c.byLabels, c.cur = nil, nil, nil
	c.prev = exact(c.prev)
	lo.fit()
}

// exact returns s in memory of its size, if it has much more.
func exact[S ~[]E, E any](s S) S {
	if cap(s)-len(s) > len(s)/16 {
		return slices.Clip(append(make(S, 0, len(s)), s...))
	}
	return s
}

// unpack makes the lines and series again; a body came that is not of the
// layout. Who often needs that is packed later each time.
func (c *cache) unpack() {
	if c.lines != nil {
		c.calm = 0
		return
	}
	c.calm, c.patient = 0, min(max(2*c.patient, minPatient), maxPatient)
	lo := c.layout
	c.lines = make(map[string]*line, len(lo.lines))
	c.byLabels = make(map[uint64]*series, len(lo.lines))
	for i := range lo.lines {
		lo.lines[i].l.s.next = nil
	}
	for i := range lo.lines {
		l := lo.lines[i].l
		c.lines[string(lo.key(i))] = l
		first := c.byLabels[l.s.h.Hash()]
		if !l.s.among(first) {
			l.s.next = first
			c.byLabels[l.s.h.Hash()] = l.s
		}
	}
}

// among reports whether s is first or follows it.
func (s *series) among(first *series) bool {
	for ; first != nil; first = first.next {
		if first == s {
			return true
		}
	}
	return false
}
