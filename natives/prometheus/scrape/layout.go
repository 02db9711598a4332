package scrape

import (
	"slices"
	"sort"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/batch"
)

// format is the syntax of a body, as far as layouts distinguish it.
type format uint8

const (
	otherFormat format = iota // has no layout
	textFormat
	openMetricsFormat
)

// layout is the part of a body that stays the same between scrapes: the lines of
// the last body without values and timestamps. The text between two values is a
// run: a line feed, optional metadata and comments, and the name and labels of
// the next sample with a space. If a new body has the same run between two
// values, textparse would read the same lines, so only the values are parsed.
//
// This is correct for the following reasons. A run starts where a lexer has just
// ended a value (or timestamp) and meets a line feed, and it ends with the space
// before the next value; the tokens between depend on nothing else. A value ends
// at a space, at a line feed or at the end of the body, both for the lexers and
// for parseValue. The only state that the parsers keep between lines is the type
// of the last TYPE line and the last UNIT. They affect the labels of lines that
// are not cached, and such lines are never read with a layout.
//
// Texts are not stored, only their fingerprints and lengths. Most runs consist of
// a line feed, the text of a cached line, and a space.
type layout struct {
	format      format
	contentType string

	lines []layoutLine
	odd   []oddRun // of the lines with lineOdd, in order
	meta  []layoutMeta
	tail  oddRun // the text after the last value

	ok     bool // the layout describes a whole body
	rows   int  // number of samples in the body
	opaque int  // number of lines with lineOpaque

	// column contains the series of a batch that consists of this layout,
	// including those of the report. All such batches share it.
	column    []*batch.Series
	columnFor *settings
}

// layoutLine is one sample line.
type layoutLine struct {
	line  uint32 // index in the cache
	flags lineFlags
}

// oddRun is the part of a run that is more than a line feed, name and labels, and
// a space.
type oddRun struct {
	before fingerprint // of the text before the name
	n      uint32      // length of that text
	at     uint32      // index of its line
	meta   uint32      // end of its metadata lines in layout.meta
	pad    uint32      // length of the white space after the labels
}

type lineFlags uint8

const (
	// lineHasT: the value is followed by a space and a timestamp.
	lineHasT lineFlags = 1 << iota
	// lineRepeated: the series occurred in the body before; the value is dropped.
	lineRepeated
	// lineOpaque: more text follows the value (an exemplar, white space);
	// textparse reads the line.
	lineOpaque
	// lineOdd: the run is described by an oddRun.
	lineOdd
)

// layoutMeta is a metadata line in a run.
type layoutMeta struct {
	family uint32 // index in the cache
	kind   metaKind
	text   string // shared with the family's metadata
}

// maxLayoutBody is the size from which no layout is kept for a body.
const maxLayoutBody = 1 << 30

// layouts is the pool of layouts for recording.
var layouts = sync.Pool{New: func() any { return new(layout) }}

// newLayout returns an empty layout for recording a body.
func newLayout(f format, contentType string) *layout {
	lo := layouts.Get().(*layout)
	lo.format, lo.contentType, lo.ok = f, contentType, true
	return lo
}

// free returns a layout to the pool after recording. It must not be used any
// more. lo may be nil.
func (lo *layout) free() {
	if lo == nil {
		return
	}
	clear(lo.meta)
	lines, odd, meta := lo.lines[:0], lo.odd[:0], lo.meta[:0]
	*lo = layout{}
	// The pool serves targets of every size; the memory of one huge body must not
	// stay for all of them.
	if cap(lines) <= 64<<10 && cap(odd) <= 64<<10 {
		lo.lines, lo.odd, lo.meta = lines, odd, meta
	}
	layouts.Put(lo)
}

// kept returns a copy of the recorded layout with exactly the memory that it
// needs.
func (lo *layout) kept() *layout {
	out := *lo
	out.lines, out.odd, out.meta = slices.Clone(lo.lines), slices.Clone(lo.odd), slices.Clone(lo.meta)
	lo.free()
	return &out
}

// recorder records the layout of a body while its lines are read.
type recorder struct {
	*layout
	mark int // the end of the part that was read
}

// sample records a sample line and returns its index. Its name and labels take
// key bytes, followed by pad bytes of white space. Its value starts at value in
// b, and its variable part ends at bound.
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

// invalid records that the body contains something that a layout cannot describe.
func (r *recorder) invalid() {
	if r.layout != nil {
		r.ok = false
	}
}

// finish records the text after the last value.
func (r *recorder) finish(b []byte, rows int) {
	if r.layout == nil || !r.ok {
		return
	}
	tail := b[r.mark:]
	r.tail = oddRun{before: fingerprintOf(tail), n: uint32(len(tail)), at: uint32(len(r.lines)), meta: uint32(len(r.meta))}
	r.rows = rows
	// If there are many opaque lines, a parser for each costs more than one
	// parser for all.
	r.ok = r.opaque <= len(r.lines)/4
}

// matches reports whether b contains at p the text before the name.
func (o *oddRun) matches(b []byte, p int) bool {
	return int(o.n) <= len(b)-p && fingerprintOf(b[p:p+int(o.n)]) == o.before
}

// value returns the position in b of the value of a line whose run starts at p,
// or -1 if the run is not that of the line.
func (l *line) value(b []byte, p int) int {
	end := p + 1 + int(l.n)
	if end >= len(b) || b[p] != '\n' || b[end] != ' ' || fingerprintOf(b[p+1:end]) != l.text {
		return -1
	}
	return end + 1
}

// oddValue is value for a line with an odd run.
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

// oddFrom returns the index in odd of the first line that is not before line i.
func (lo *layout) oddFrom(i int) int {
	return sort.Search(len(lo.odd), func(k int) bool { return int(lo.odd[k].at) >= i })
}

// variable parses the variable part of a line at the beginning of b: the value
// and an optional timestamp. n is its length, and the line must end there.
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
// lines are those of the cache. It appends the values of the rows to vs and their
// timestamps to ts; lines without a timestamp get now. all is false if b does not
// match the layout or contains a timestamp above maxT; the caller must then
// discard the rows. Without honor, timestamps are parsed but not used.
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

// nextLine returns the start of the line after the value that ended at p. At the
// beginning of the body, it is 0.
func nextLine(b []byte, p int) int {
	if p == 0 {
		return 0
	}
	return min(p+1, len(b))
}

// columns returns the series of a batch that consists of this layout. The slice
// is shared; nobody may write to it or append to it.
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

// formatOf returns the format that p parses.
func formatOf(p textparse.Parser) format {
	switch p.(type) {
	case *textparse.PromParser:
		return textFormat
	case *textparse.OpenMetricsParser:
		return openMetricsFormat
	}
	return otherFormat
}

// parser returns a textparse parser for the rest of a body.
func (f format) parser(b []byte) textparse.Parser {
	if f == openMetricsFormat {
		return textparse.NewOpenMetricsParser(b, labels.NewSymbolTable())
	}
	return textparse.NewPromParser(b, labels.NewSymbolTable(), false)
}
