package scrape

import (
	"slices"
	"sort"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/batch"
)

// format is the syntax of a body, as far as layouts know it.
type format uint8

const (
	otherFormat format = iota // never has a layout
	textFormat
	openMetricsFormat
)

// layout is what stays the same when a target is scraped again: the lines of
// its last body without values and timestamps. The text between two values is
// a run: a line feed, maybe metadata and comments, then name and labels of the
// next sample and a space. Where a new body has the same run between two values,
// textparse would see the same lines, so only the values are parsed.
//
// Why that is so: a run starts where a lexer has just ended a value (or
// timestamp) and meets a line feed, and ends with the space before the next
// value; what the lexer makes of the bytes between depends on nothing else. A
// value ends where a space, a line feed or the body's end is, for the lexers
// as for parseValue. What the parsers keep from line to line is the type of
// the last TYPE line and the last UNIT: they matter for the labels of lines
// that are not cached, and those are never parsed from a layout.
//
// Texts are not kept: fingerprint and length of each stand in for them. Most runs
// are no more than a line feed, the text of a cached line, and a space.
type layout struct {
	format      format
	contentType string

	lines []layoutLine
	odd   []oddRun // of lines flagged so, one after the other
	meta  []layoutMeta
	tail  oddRun // what follows the last value, all of it

	ok     bool // it describes a whole body
	rows   int  // samples that the body gave
	opaque int  // lines flagged so

	// column is the series of a batch made from this layout, the report's
	// among them; every batch that is made so shares it.
	column    []*batch.Series
	columnFor *settings
}

// layoutLine is one sample line.
type layoutLine struct {
	line  uint32 // of the cache
	flags lineFlags
}

// oddRun is what a run has beside a line feed, name and labels, and a space.
type oddRun struct {
	before fingerprint // of what is before the name
	n      uint32      // its length
	at     uint32      // the line whose run it is
	meta   uint32      // where its metadata lines in layout.meta end
	pad    uint32      // length of the white space behind the labels
}

type lineFlags uint8

const (
	// lineHasT: a space and a timestamp follow the value.
	lineHasT lineFlags = 1 << iota
	// lineRepeated: the series was in the body before, the value is dropped.
	lineRepeated
	// lineOpaque: more follows the value (an exemplar, white space); textparse
	// looks at the line.
	lineOpaque
	// lineOdd: the run is an odd one.
	lineOdd
)

// layoutMeta is a metadata line in a run.
type layoutMeta struct {
	family uint32 // of the cache
	kind   metaKind
	text   string // shared with the family's metadata
}

// maxLayoutBody is the size of a body that no layout is kept of.
const maxLayoutBody = 1 << 30

// layouts are those to record bodies in.
var layouts = sync.Pool{New: func() any { return new(layout) }}

// newLayout returns an empty layout to record the body in.
func newLayout(f format, contentType string) *layout {
	lo := layouts.Get().(*layout)
	lo.format, lo.contentType, lo.ok = f, contentType, true
	return lo
}

// free gives back a layout that was recorded in; it must not be used any more.
// nil is fine.
func (lo *layout) free() {
	if lo == nil {
		return
	}
	clear(lo.meta)
	lines, odd, meta := lo.lines[:0], lo.odd[:0], lo.meta[:0]
	*lo = layout{}
	// The pool serves targets of every size; one huge body must not stay for
	// all of them.
	if cap(lines) <= 64<<10 && cap(odd) <= 64<<10 {
		lo.lines, lo.odd, lo.meta = lines, odd, meta
	}
	layouts.Put(lo)
}

// kept returns what was recorded in memory of its size.
func (lo *layout) kept() *layout {
	out := *lo
	out.lines, out.odd, out.meta = slices.Clone(lo.lines), slices.Clone(lo.odd), slices.Clone(lo.meta)
	lo.free()
	return &out
}

// recorder writes the layout of a body as its lines are met.
type recorder struct {
	*layout
	mark int // up to where the body was looked at
}

// sample records a sample line. Its name and labels are key bytes before pad
// bytes of white space before value, which is where its value starts in b; bound
// is where what may change ends. It returns the line's place.
func (r *recorder) sample(b []byte, line, key, pad, value, bound int, flags lineFlags) int {
	if r.layout == nil || !r.ok {
		return -1
	}
	flags &^= lineOdd
	if before := b[r.mark : value-pad-key]; pad != 1 || len(before) != 1 || before[0] != '\n' {
		flags |= lineOdd
		r.odd = append(r.odd, oddRun{
			before: fingerprintOf(before), n: uint32(len(before)),
			at: uint32(len(r.lines)), meta: uint32(len(r.meta)), pad: uint32(pad),
		})
	}
	if flags&lineOpaque != 0 {
		r.opaque++
	}
	r.lines = append(r.lines, layoutLine{line: uint32(line), flags: flags})
	r.mark = bound
	return len(r.lines) - 1
}

func (r *recorder) metadata(m layoutMeta) {
	if r.layout != nil && r.ok {
		r.meta = append(r.meta, m)
	}
}

// invalid says that the body has something that a layout cannot describe.
func (r *recorder) invalid() {
	if r.layout != nil {
		r.ok = false
	}
}

// finish records what follows the last value.
func (r *recorder) finish(b []byte, rows int) {
	if r.layout == nil || !r.ok {
		return
	}
	tail := b[r.mark:]
	r.tail = oddRun{before: fingerprintOf(tail), n: uint32(len(tail)), at: uint32(len(r.lines)), meta: uint32(len(r.meta))}
	r.rows = rows
	// With many opaque lines, a parser for each costs more than one for all.
	r.ok = r.opaque <= len(r.lines)/4
}

// matches reports whether b has at p what is before the name.
func (o *oddRun) matches(b []byte, p int) bool {
	return int(o.n) <= len(b)-p && fingerprintOf(b[p:p+int(o.n)]) == o.before
}

// value returns where in b the value of a line starts whose run starts at p,
// and -1 when that is not the line's run.
func (l *line) value(b []byte, p int) int {
	end := p + 1 + int(l.n)
	if end >= len(b) || b[p] != '\n' || b[end] != ' ' || fingerprintOf(b[p+1:end]) != l.text {
		return -1
	}
	return end + 1
}

// oddValue is value for an odd run.
func (l *line) oddValue(b []byte, p int, odd *oddRun) int {
	if !odd.matches(b, p) {
		return -1
	}
	p += int(odd.n)
	end := p + int(l.n)
	q := end + int(odd.pad)
	if q > len(b) || b[q-1] != ' ' || fingerprintOf(b[p:end]) != l.text {
		return -1
	}
	for _, c := range b[end:q] {
		if c != ' ' && c != '\t' {
			return -1
		}
	}
	return q
}

// oddFrom returns the place in odd of the first one of line i or later.
func (lo *layout) oddFrom(i int) int {
	return sort.Search(len(lo.odd), func(k int) bool { return int(lo.odd[k].at) >= i })
}

// variable parses what may change in the line whose value starts b: the value
// and maybe a timestamp. n is its length; the line ends there.
func (lo *layout) variable(b []byte, flags lineFlags) (v float64, t int64, n int, ok bool) {
	v, n, ok = parseValue(b)
	if !ok {
		return 0, 0, 0, false
	}
	if flags&lineHasT != 0 {
		if n == len(b) || b[n] != ' ' {
			return 0, 0, 0, false
		}
		var m int
		if lo.format == openMetricsFormat {
			t, m, ok = parseSeconds(b[n+1:])
		} else {
			t, m, ok = parseMillis(b[n+1:])
		}
		if !ok {
			return 0, 0, 0, false
		}
		n += 1 + m
	}
	if n == len(b) && lo.format == openMetricsFormat || n < len(b) && b[n] != '\n' {
		return 0, 0, 0, false
	}
	return v, t, n, true
}

// replay parses b as a body of this layout, which must have no opaque lines;
// lines are the cache's. It appends the values of its rows to vs, and to ts their
// timestamps, with now for lines without one. all is false when b is no such
// body, or has a timestamp above maxT; the rows are to be thrown away then.
// Without honor, timestamps are parsed but not used.
func (lo *layout) replay(lines []line, b []byte, honor bool, now, maxT int64, vs []float64, ts []int64) (_ []float64, _ []int64, all bool) {
	p, odd, ok := 0, lo.odd, false
	for _, ln := range lo.lines {
		var (
			l = &lines[ln.line]
			q int
			v float64
			w int
			t = now
		)
		if ln.flags == 0 {
			if q = l.value(b, p); q < 0 {
				return vs, ts, false
			}
			v, w, ok = parseValue(b[q:])
			ok = ok && (q+w == len(b) || b[q+w] == '\n')
		} else {
			if ln.flags&lineOdd != 0 {
				q, odd = l.oddValue(b, p, &odd[0]), odd[1:]
			} else {
				q = l.value(b, p)
			}
			if q < 0 {
				return vs, ts, false
			}
			var lineT int64
			v, lineT, w, ok = lo.variable(b[q:], ln.flags)
			if ln.flags&lineHasT != 0 && honor {
				t = lineT
			}
		}
		if !ok || t > maxT {
			return vs, ts, false
		}
		p = q + w
		if ln.flags&lineRepeated == 0 {
			vs = append(vs, v)
			ts = append(ts, t)
		}
	}
	return vs, ts, len(b)-p == int(lo.tail.n) && lo.tail.matches(b, p)
}

// nextLine returns where the line after the value that ended at p starts; 0 at
// the beginning of the body.
func nextLine(b []byte, p int) int {
	if p == 0 {
		return 0
	}
	return min(p+1, len(b))
}

// columns returns the series of a batch that is wholly of this layout. It is
// the same slice every time; nobody writes to it or behind it.
func (c *cache) columns(s *settings, report []*batch.Series) []*batch.Series {
	lo := c.layout
	if lo.column == nil || len(lo.column) != lo.rows+len(report) || lo.columnFor != s {
		lo.column = make([]*batch.Series, 0, lo.rows+len(report))
		for i := range lo.lines {
			if lo.lines[i].flags&lineRepeated == 0 {
				lo.column = append(lo.column, c.series[c.lines[lo.lines[i].line].s].h)
			}
		}
		lo.column = append(lo.column, report...)
		lo.columnFor = s
	}
	return lo.column[:len(lo.column):len(lo.column)]
}

// formatOf says of which syntax p is the parser.
func formatOf(p textparse.Parser) format {
	switch p.(type) {
	case *textparse.PromParser:
		return textFormat
	case *textparse.OpenMetricsParser:
		return openMetricsFormat
	}
	return otherFormat
}

// parser returns textparse's parser for what is left of a body.
func (f format) parser(b []byte) textparse.Parser {
	if f == openMetricsFormat {
		return textparse.NewOpenMetricsParser(b, labels.NewSymbolTable())
	}
	return textparse.NewPromParser(b, labels.NewSymbolTable(), false)
}
