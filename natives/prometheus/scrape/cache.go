package scrape

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
)

// cache is what a target remembers from scrape to scrape: which series a line
// means, who is owed a staleness marker when it does not come again, and what
// the metadata lines said. It does what Prometheus's scrapeCache and the
// references of its storage do together.
//
// Lines, series and families are known by their place in a slice, which changes
// only when a scrape is done. There are millions of them: what a pointer, a map
// or an allocation for each would take is more than what is in them.
type cache struct {
	iter uint32 // number of the running scrape

	lines    []line
	series   []series
	families []family
	seen     int // of lines, in the running scrape
	ended    int // series, with the last body that was not one of the layout
	success  int // how much was cached after the last good scrape

	// Tables of the three by text, labels and name. They are empty until
	// somebody asks, and again when a scrape is done that changed numbers or
	// that asked nothing.
	byText, byLabels, byName table

	slab batch.Slab
	tags *batch.Tags     // of the newest series
	gone []*batch.Series // left the cache; to be released once what is sent was accepted
	// changed says that a metadata line of the running scrape said something new
	// about a family that samples before it were taken for.
	changed bool

	exemplars exemplars

	layout *layout // of the last body, nil for none
	// settled says that the last scrape was one of that layout and that another
	// such body would leave the cache as it is.
	settled bool
}

// line is the text of a name with labels, as the target writes it.
type line struct {
	text fingerprint
	n    uint32 // length of the text
	s    uint32 // its series
	iter uint32 // last scrape it was in
	at   int32  // its place in the layout of the last body, if it is still there
}

// series is one set of labels. Several lines may mean the same.
type series struct {
	h       *batch.Series
	tracked uint32 // last scrape after which it is owed a marker, 0 for never
	lines   int32  // that mean it and are cached
}

// family is what metadata lines said about a metric family.
type family struct {
	meta *batch.Metadata // its Family is the name
	iter uint32          // last scrape that said something
	used uint32          // last scrape that had samples of it
}

func newCache() *cache { return &cache{iter: 2} } // the scrape before it is not 0, which is never

// find returns the line with that text, -1 when there is none.
func (c *cache) find(text []byte) int {
	if len(c.byText.slots) == 0 {
		c.indexLines(len(c.lines))
	}
	f, n := fingerprintOf(text), uint32(len(text))
	i, slot := c.byText.first(f.slot())
	for i >= 0 && (c.lines[i].text != f || c.lines[i].n != n) {
		i, slot = c.byText.next(slot)
	}
	return i
}

// touch says that a line is in the running scrape, and returns whether it was
// before.
func (c *cache) touch(i int) (again bool) {
	l := &c.lines[i]
	if l.iter == c.iter {
		return true
	}
	l.iter = c.iter
	c.seen++
	return false
}

// add caches a line that find did not find.
func (c *cache) add(text []byte, s int) int {
	l := line{text: fingerprintOf(text), n: uint32(len(text)), s: uint32(s), iter: c.iter, at: -1}
	c.series[s].lines++
	c.seen++
	i := len(c.lines)
	c.lines = append(c.lines, l)
	if i >= c.byText.room() {
		c.indexLines(2 * len(c.lines))
	} else {
		c.byText.add(l.text.slot(), i)
	}
	return i
}

// labelled returns the series with those labels, encoded as
// Series.AppendWire does; tags are those of them that the target gives.
func (c *cache) labelled(wire []byte, tags []labels.Label) int {
	if len(c.byLabels.slots) == 0 {
		c.indexSeries(len(c.series))
	}
	hash := batch.Hash(wire)
	i, slot := c.byLabels.first(hash)
	for i >= 0 && !c.series[i].h.Is(hash, wire) {
		i, slot = c.byLabels.next(slot)
	}
	if i >= 0 {
		return i
	}
	i = len(c.series)
	c.series = append(c.series, series{h: c.slab.Series(hash, wire, c.tagged(tags))})
	if i >= c.byLabels.room() {
		c.indexSeries(2 * len(c.series))
	} else {
		c.byLabels.add(hash, i)
	}
	return i
}

// tagged returns a target's labels as its series share them.
func (c *cache) tagged(tags []labels.Label) *batch.Tags {
	var room [1024]byte
	wire := room[:0]
	for _, l := range tags {
		if l.Value != "" {
			wire = batch.AppendLabel(wire, l.Name, l.Value)
		}
	}
	if c.tags == nil || !c.tags.Is(wire) {
		c.tags = batch.NewTags(wire)
	}
	return c.tags
}

// expect makes room for about n new series.
func (c *cache) expect(n int) {
	c.slab.Expect(n)
	if n > 0 {
		c.lines, c.series = slices.Grow(c.lines, n), slices.Grow(c.series, n)
		c.indexLines(n)
		c.indexSeries(n)
	}
}

func (c *cache) indexLines(room int) {
	c.byText.reset(room)
	for i := range c.lines {
		c.byText.add(c.lines[i].text.slot(), i)
	}
}

func (c *cache) indexSeries(room int) {
	c.byLabels.reset(room)
	for i := range c.series {
		c.byLabels.add(c.series[i].h.Hash(), i)
	}
}

// track says that a series is owed a marker when the next scrape does not have
// it.
func (c *cache) track(s int) { c.series[s].tracked = c.iter }

// room is for how many rows there should be room: those of the layout, the
// report's, and markers for as many series as ended with the body before.
func (c *cache) room() int { return c.layout.rows + reportRows + c.ended }

// appendStale appends to dst the series of the scrape before that the running
// one does not have.
func (c *cache) appendStale(dst []*batch.Series) []*batch.Series {
	for i := range c.series {
		if s := &c.series[i]; s.tracked == c.iter-1 {
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
	if flush || forced {
		if c.seen < len(c.lines) {
			c.dropLines()
		}
		c.dropFamilies()
	}
	c.iter++
	c.seen = 0
}

// forget drops all lines, because they would now mean other series. Series
// that were sent keep their handles if the next scrape has their labels, and
// get their markers otherwise.
func (c *cache) forget() {
	c.dropLayout()
	c.lines = c.lines[:0]
	c.families = nil
	c.byText.drop()
	c.byName.drop()
	// A line of its own, whose text nothing has, keeps each series in the cache
	// until the next good scrape, as if it had been seen in another form.
	for i := range c.series {
		c.lines = append(c.lines, line{text: fingerprint{lo: uint64(i)}, n: noText, s: uint32(i), at: -1})
		c.series[i].lines = 1
	}
}

// noText is the length of no text.
const noText = 1<<32 - 1

func (c *cache) dropLayout() {
	c.layout, c.settled = nil, false
}

// has reports whether h is of a series in the cache.
func (c *cache) has(h *batch.Series) bool {
	if len(c.byLabels.slots) == 0 {
		c.indexSeries(len(c.series))
	}
	i, slot := c.byLabels.first(h.Hash())
	for i >= 0 && c.series[i].h != h {
		i, slot = c.byLabels.next(slot)
	}
	return i >= 0
}

// all yields every handle of the cache, those that left it but are not released
// among them.
func (c *cache) all(yield func(*batch.Series) bool) {
	for i := range c.series {
		if !yield(c.series[i].h) {
			return
		}
	}
	for _, h := range c.gone {
		if !yield(h) {
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
// the family. text is the type, for metaType.
func (c *cache) setMeta(name []byte, kind metaKind, text []byte) int {
	if len(c.byName.slots) == 0 {
		c.indexFamilies(len(c.families))
	}
	hash := maphash.Bytes(longKeys[0], name)
	i, slot := c.byName.first(hash)
	for i >= 0 && c.families[i].meta.Family != string(name) {
		i, slot = c.byName.next(slot)
	}
	if i < 0 {
		i = len(c.families)
		c.families = append(c.families, family{meta: metadata.share(batch.Metadata{Type: model.MetricTypeUnknown, Family: alias(name)})})
		if i >= c.byName.room() {
			c.indexFamilies(2 * len(c.families))
		} else {
			c.byName.add(hash, i)
		}
	}
	f := &c.families[i]
	f.iter = c.iter
	if kind.textOf(f.meta) != string(text) {
		c.changeMeta(f, kind, alias(text))
	}
	return i
}

func (c *cache) indexFamilies(room int) {
	c.byName.reset(room)
	for i := range c.families {
		c.byName.add(maphash.String(longKeys[0], c.families[i].meta.Family), i)
	}
}

// resetMeta applies a metadata line again.
func (c *cache) resetMeta(m layoutMeta) {
	f := &c.families[m.family]
	f.iter = c.iter
	if m.kind.textOf(f.meta) != m.text {
		c.changeMeta(f, m.kind, m.text)
	}
}

// textOf returns what a line of that kind says, for a family to have that metadata.
func (k metaKind) textOf(m *batch.Metadata) string {
	switch k {
	case metaType:
		return string(m.Type)
	case metaHelp:
		return m.Help
	}
	return m.Unit
}

// alias returns b as a string, for who keeps none of it.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// changeMeta gives f new metadata; what series have of it is never written to,
// and text not kept.
func (c *cache) changeMeta(f *family, kind metaKind, text string) {
	m := *f.meta
	switch kind {
	case metaType:
		m.Type = model.MetricType(text)
	case metaHelp:
		m.Help = text
	case metaUnit:
		m.Unit = text
	}
	f.meta = metadata.share(m)
	if f.used == c.iter {
		c.changed = true
	}
}
