package scrape

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
)

// cache is the state that a target keeps between scrapes: the series of each
// line, the series that need a staleness marker if they disappear, and the
// metadata. It combines the functions of Prometheus's scrapeCache and of the
// references in its storage.
//
// Lines, series and families are identified by their index in a slice. Indexes
// change only when a scrape is done. There are millions of entries: a pointer, a
// map or an allocation for each would take more memory than the data.
type cache struct {
	iter uint32 // number of the current scrape

	lines    []line
	series   []series
	families []family
	seen     int // number of lines in the current scrape
	ended    int // number of series that ended with the last body that did not match the layout
	success  int // number of cached entries after the last good scrape

	// Indexes of lines by text, of series by labels, and of families by name.
	// They are built when they are first used. They are cleared when a scrape is
	// done that renumbered entries or did not use them.
	byText, byLabels, byName table

	slab batch.Slab
	tags *batch.Tags     // of the newest series
	gone []*batch.Series // removed from the cache; released when the batch was accepted
	// changed is true if a metadata line of the current scrape changed the
	// metadata of a family after samples of that family were read.
	changed bool

	exemplars exemplars

	layout *layout // of the last body; nil if there is none
	// settled is true if the last scrape matched the layout and another body with
	// the same layout would not change the cache.
	settled bool
}

// line is the name and labels of a sample as the target writes them.
type line struct {
	text fingerprint
	n    uint32 // length of the text
	s    uint32 // index of its series
	iter uint32 // the last scrape that contained it
	at   int32  // its index in the layout of the last body, if it is still there
}

// series is one set of labels. Several lines may belong to it.
type series struct {
	h       *batch.Series
	tracked uint32 // the last scrape after which it needs a marker; 0 for never
	lines   int32  // number of cached lines that belong to it
}

// family is the metadata of a metric family.
type family struct {
	meta *batch.Metadata // meta.Family is the name
	iter uint32          // the last scrape that contained metadata
	used uint32          // the last scrape that contained samples of it
}

func newCache() *cache { return &cache{iter: 2} } // 0 means never, so the previous scrape must not be 0

// find returns the index of the line with that text, or -1.
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

// touch records that the current scrape contains a line. It reports whether the
// scrape has contained the line before.
func (c *cache) touch(i int) (again bool) {
	l := &c.lines[i]
	if l.iter == c.iter {
		return true
	}
	l.iter = c.iter
	c.seen++
	return false
}

// add caches a line that find did not find. s is the index of its series.
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

// labelled returns the index of the series with these labels, which are encoded
// as by Series.AppendWire. tags are the labels that come from the target.
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

// tagged returns the labels of a target in the form that its series share.
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

// expect allocates memory for about n new series.
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

// track records that a series needs a marker if the next scrape does not contain
// it.
func (c *cache) track(s int) { c.series[s].tracked = c.iter }

// room returns the number of rows to allocate: those of the layout, those of the
// report, and markers for as many series as ended with the previous body.
func (c *cache) room() int { return c.layout.rows + reportRows + c.ended }

// appendStale appends to dst the series of the previous scrape that the current
// one does not contain.
func (c *cache) appendStale(dst []*batch.Series) []*batch.Series {
	for i := range c.series {
		if s := &c.series[i]; s.tracked == c.iter-1 {
			dst = append(dst, s.h)
		}
	}
	return dst
}

// done ends the current scrape. After a successful scrape, entries that it did
// not contain are removed. After a failed scrape, entries stay up to a limit,
// because the target may recover.
func (c *cache) done(flush bool) {
	count := len(c.lines) + len(c.families)
	if flush {
		c.success = count
	}
	forced := count > 2*c.success+1000
	if forced && !flush {
		c.dropLayout() // it may refer to lines that are removed now
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

// forget removes all lines, because they would now belong to other series. Series
// that were sent keep their handles if the next scrape has their labels;
// otherwise they get a staleness marker.
func (c *cache) forget() {
	c.dropLayout()
	c.lines = c.lines[:0]
	c.families = nil
	c.byText.drop()
	c.byName.drop()
	// A line with an impossible text keeps each series in the cache until the
	// next good scrape, as if the series had been written differently.
	for i := range c.series {
		c.lines = append(c.lines, line{text: fingerprint{lo: uint64(i)}, n: noText, s: uint32(i), at: -1})
		c.series[i].lines = 1
	}
}

// noText is the length of a line that has no text.
const noText = 1<<32 - 1

func (c *cache) dropLayout() {
	c.layout, c.settled = nil, false
}

// has reports whether h is the handle of a series in the cache.
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

// all yields every handle of the cache, including those that were removed but not
// released yet.
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

// metaKind is the kind of a metadata line.
type metaKind uint8

const (
	metaType metaKind = iota
	metaHelp
	metaUnit
)

// setMeta applies a metadata line of the named family and returns the index of
// the family. For metaType, text is the type.
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

// resetMeta applies the metadata line of a layout.
func (c *cache) resetMeta(m layoutMeta) {
	f := &c.families[m.family]
	f.iter = c.iter
	if m.kind.textOf(f.meta) != m.text {
		c.changeMeta(f, m.kind, m.text)
	}
}

// textOf returns the text of the metadata line of that kind.
func (k metaKind) textOf(m *batch.Metadata) string {
	switch k {
	case metaType:
		return string(m.Type)
	case metaHelp:
		return m.Help
	}
	return m.Unit
}

// alias returns b as a string without a copy. The caller must not retain the
// string.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// changeMeta changes the metadata of f. Metadata that series refer to is never
// written to, and text is copied.
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
