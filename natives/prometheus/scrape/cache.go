package scrape

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
)

// cache is what a target remembers from scrape to scrape: which series a line
// means, who is owed a staleness marker when it does not come again, and what
// the metadata lines said. It does what Prometheus's scrapeCache and the
// references of its storage do together.
type cache struct {
	iter uint32 // number of the running scrape

	lines    map[string]*line   // by the text of name and labels; nil while packed
	seen     int                // of lines, in the running scrape
	byLabels map[uint64]*series // by label hash; the next ones in series.next; nil while packed
	families map[string]*family // by name
	success  int                // how much was cached after the last good scrape

	prev []*series // tracked in the scrape before
	cur  []*series // tracked in the running scrape

	gone []*series // left the cache; to be released once what is sent was accepted
	// changed says that a metadata line of the running scrape said something new
	// about a family that samples before it were taken for.
	changed bool

	layout *layout // of the last body, nil for none
	// settled says that the last scrape was one of that layout and that another
	// such body would leave the cache as it is.
	settled bool
	calm    int // bodies in a row that were of that layout or made it
	patient int // of those, how many it takes until the cache is packed
}

// line is the text of a name with labels, as the target writes it.
type line struct {
	s    *series
	iter uint32 // last scrape it was in
	at   int32  // its place in the layout of the last body, if it is still there
}

// series is one set of labels. Several lines may mean the same.
type series struct {
	h       *batch.Series
	meta    *batch.Metadata
	next    *series
	tracked uint32 // last scrape after which it is owed a marker, 0 for never
	lines   int32  // that mean it and are cached
}

// family is what metadata lines said about a metric family.
type family struct {
	name string
	iter uint32 // last scrape that said something
	used uint32 // last scrape that had samples of it
	meta *batch.Metadata
}

func newCache() *cache {
	return &cache{
		iter:     1,
		lines:    map[string]*line{},
		byLabels: map[uint64]*series{},
		families: map[string]*family{},
	}
}

// get returns the line with that text, and whether it was in the running
// scrape already.
func (c *cache) get(text []byte) (l *line, again bool) {
	l = c.lines[string(text)]
	if l == nil {
		return nil, false
	}
	return l, c.touch(l)
}

// touch says that l is in the running scrape.
func (c *cache) touch(l *line) (again bool) {
	if l.iter == c.iter {
		return true
	}
	l.iter = c.iter
	c.seen++
	return false
}

// add caches a line that get did not find.
func (c *cache) add(text []byte, s *series) *line {
	l := &line{s: s, iter: c.iter, at: -1}
	s.lines++
	c.lines[string(text)] = l
	c.seen++
	return l
}

// series returns the series with those labels.
func (c *cache) series(ls labels.Labels) *series {
	h := batch.FromLabels(ls)
	first := c.byLabels[h.Hash()]
	for s := first; s != nil; s = s.next {
		if s.h.Equal(h) {
			h.Release()
			return s
		}
	}
	s := &series{h: h, next: first}
	c.byLabels[h.Hash()] = s
	return s
}

// track says that s is owed a marker when the next scrape does not have it.
func (c *cache) track(s *series) {
	if s.tracked != c.iter {
		s.tracked = c.iter
		c.cur = append(c.cur, s)
	}
}

// appendStale appends to dst the series of the scrape before that the running
// one does not have.
func (c *cache) appendStale(dst []*batch.Series) []*batch.Series {
	for _, s := range c.prev {
		if s.tracked != c.iter {
			dst = append(dst, s.h)
		}
	}
	return dst
}

// done ends the running scrape. What a successful one does not have leaves
// the cache; after a failed one all stays, since the target may recover, within
// limits.
func (c *cache) done(flush bool) {
	count := len(c.lines) + len(c.families)
	if flush {
		c.success = count
	}
	forced := count > 2*c.success+1000
	if forced && !flush {
		c.dropLayout() // it may hold lines that go now
	}
	if c.seen < len(c.lines) && (flush || forced) {
		for text, l := range c.lines {
			if l.iter != c.iter {
				delete(c.lines, text)
				c.unuse(l.s)
			}
		}
	}
	if flush || forced {
		for name, f := range c.families {
			if c.iter-f.iter > 10 {
				delete(c.families, name)
			}
		}
	}
	c.prev, c.cur = c.cur, c.prev
	clear(c.cur)
	c.cur = c.cur[:0]
	c.iter++
	c.seen = 0
}

// unuse takes away one of the lines that mean s.
func (c *cache) unuse(s *series) {
	if s.lines--; s.lines > 0 {
		return
	}
	p := c.byLabels[s.h.Hash()]
	if p == s {
		if s.next == nil {
			delete(c.byLabels, s.h.Hash())
		} else {
			c.byLabels[s.h.Hash()] = s.next
		}
	} else {
		for p.next != s {
			p = p.next
		}
		p.next = s.next
	}
	s.next = nil
	c.gone = append(c.gone, s)
}

// forget drops all lines, because they would now mean other series. Series
// that were sent keep their handles if the next scrape has their labels, and
// get their markers otherwise.
func (c *cache) forget() {
	c.unpack()
	for _, l := range c.lines {
		l.s.lines--
	}
	clear(c.lines)
	clear(c.families)
	c.dropLayout()
	// A line of its own keeps each series in the cache until the next good
	// scrape, as if it had been seen in another form.
	for _, first := range c.byLabels {
		for s := first; s != nil; s = s.next {
			text := "\xff" + s.h.Wire() // no line starts so
			c.lines[text] = &line{s: s, at: -1}
			s.lines++
		}
	}
}

func (c *cache) dropLayout() {
	c.unpack()
	c.layout.free()
	c.layout, c.settled = nil, false
}

// has reports whether h is of a series in the cache.
func (c *cache) has(h *batch.Series) bool {
	c.unpack()
	for s := c.byLabels[h.Hash()]; s != nil; s = s.next {
		if s.h == h {
			return true
		}
	}
	return false
}

// all yields every series of the cache, some maybe twice, those that left it but
// are not released among them.
func (c *cache) all(yield func(*series) bool) {
	if c.lines == nil {
		for i := range c.layout.lines {
			if !yield(c.layout.lines[i].l.s) {
				return
			}
		}
	}
	for _, first := range c.byLabels {
		for s := first; s != nil; s = s.next {
			if !yield(s) {
				return
			}
		}
	}
	for _, s := range c.gone {
		if !yield(s) {
			return
		}
	}
}

// metaKind is what a metadata line is about.
type metaKind uint8

const (
	metaType metaKind = iota
	metaHelp
	metaUnit
)

// setMeta applies a metadata line about the family of that name and returns
// the family. typ is for metaType, text for the others.
func (c *cache) setMeta(name []byte, kind metaKind, typ model.MetricType, text []byte) *family {
	f := c.families[string(name)]
	if f == nil {
		f = &family{name: string(name), meta: &batch.Metadata{Type: model.MetricTypeUnknown, Family: string(name)}}
		c.families[f.name] = f
	}
	f.iter = c.iter
	var same bool
	switch kind {
	case metaType:
		same = f.meta.Type == typ
	case metaHelp:
		same = f.meta.Help == string(text)
	case metaUnit:
		same = f.meta.Unit == string(text)
	}
	if !same {
		c.changeMeta(f, kind, typ, string(text))
	}
	return f
}

// resetMeta applies a metadata line again.
func (c *cache) resetMeta(m layoutMeta) {
	m.f.iter = c.iter
	var same bool
	switch m.kind {
	case metaType:
		same = m.f.meta.Type == m.typ
	case metaHelp:
		same = m.f.meta.Help == m.text
	case metaUnit:
		same = m.f.meta.Unit == m.text
	}
	if !same {
		c.changeMeta(m.f, m.kind, m.typ, m.text)
	}
}

// changeMeta gives f new metadata; what series have of it is never written to.
func (c *cache) changeMeta(f *family, kind metaKind, typ model.MetricType, text string) {
	m := *f.meta
	switch kind {
	case metaType:
		m.Type = typ
	case metaHelp:
		m.Help = text
	case metaUnit:
		m.Unit = text
	}
	f.meta = &m
	if f.used == c.iter {
		c.changed = true
	}
}
